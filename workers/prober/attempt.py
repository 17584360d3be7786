"""One attempt of a probe, whatever its handler."""

from __future__ import annotations

from ipc.k8s.api.v1.probe import Probe, TCPSocketAction
from ipc.link.eventloop.loop_clock import loop_time
from workers.kubecontainer.runtime import Runtime
from workers.podhttp.endpoints import PortError, connect, dial_text, endpoint_of
from workers.podhttp.pod_network import Dialer, DialError
from workers.prober.exec import probe_exec
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome, ProbeTarget


async def attempt(probe: Probe, target: ProbeTarget, dialer: Dialer, runtime: Runtime) -> ProbeOutcome:
    """Ask once, for at most ``timeoutSeconds``; retries, thresholds and events are the caller's.

    Mirrors runProbe (pkg/kubelet/prober/prober.go). May be cancelled: its connection is closed then; a command runs to
    its end. Raises ProbeError when nothing is known about the container: the agent's dialer or Podman is away, the
    manifest's port does not exist, or a command cannot be run.
    """
    try:
        return await _attempt(probe, target, dialer, runtime)
    except (DialError, PortError) as error:
        raise ProbeError(str(error)) from error


async def _attempt(probe: Probe, target: ProbeTarget, dialer: Dialer, runtime: Runtime) -> ProbeOutcome:
    timeout_s = probe.timeout_seconds
    if probe.exec is not None:
        return await probe_exec(probe.exec, target, timeout_s, runtime)
    if probe.http_get is not None:
        from workers.prober.http import probe_http  # brings h11

        return await probe_http(probe.http_get, target, timeout_s, dialer)
    if probe.tcp_socket is not None:
        return await probe_tcp(probe.tcp_socket, target, timeout_s, dialer)
    if probe.grpc is not None:
        from workers.prober.grpc import probe_grpc  # brings HTTP/2, 1.2 MiB that few pods need

        return await probe_grpc(probe.grpc, target, timeout_s, dialer)
    raise ProbeError(f"missing probe handler for {target.container.name}")


async def probe_tcp(action: TCPSocketAction, target: ProbeTarget, timeout_s: int, dialer: Dialer) -> ProbeOutcome:
    """Ask whether a connection can be made. Mirrors DoTCPProbe (pkg/probe/tcp/tcp.go). Raises PortError, DialError.

    Upstream's ProbeDialer sets SO_LINGER to 1 s against sockets in TIME_WAIT. On Linux it has no effect on those (60 s
    with and without it, measured), but holds up close(), and with it everybody else in this loop, until the other side
    has acknowledged the end: it is left out. An end by SO_LINGER 0 would show as a reset in the server's log.
    """
    endpoint = endpoint_of(target.network, action.host, action.port, target.container)
    deadline = loop_time() + timeout_s
    try:
        connected = await connect(dialer, endpoint, deadline)
    except OSError as error:
        return ProbeOutcome(Answer.FAILURE, dial_text(endpoint, error))
    connected.close()
    return ProbeOutcome(Answer.SUCCESS)
