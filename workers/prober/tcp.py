"""A TCP probe: can a connection be made."""

from __future__ import annotations

from ipc.api.v1.probe import TCPSocketAction
from ipc.eventloop.loop_clock import loop_time
from workers.podhttp.endpoints import connect, dial_text, endpoint_of
from workers.podhttp.pod_network import Dialer
from workers.prober.outcome import Answer, ProbeOutcome, ProbeTarget


async def probe_tcp(action: TCPSocketAction, target: ProbeTarget, timeout_s: int, dialer: Dialer) -> ProbeOutcome:
    """Mirrors DoTCPProbe (pkg/probe/tcp/tcp.go). Raises PortError, DialError.

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
