"""Where a pod's ports are reached, and how sockets come from there."""

from __future__ import annotations

import socket
from typing import Final, Protocol

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState
from ipc.k8s.network.pod_ips import sort_pod_ips


class PodNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The network namespace of one sandbox."""

    infra_pid: int = 0
    """Pid of its infra container's process in the host's pid namespace; 0: the pod is in the host's network, negative:
    it has none now, and dialling it fails."""
    infra_start_ticks: int = 0
    """When that process was started, in clock ticks since boot (/proc/PID/stat, 22): a reused pid is another one."""
    ip: str = ""
    """The pod's address as in its status. Inside the pod's own namespace 127.0.0.1 is reached as well."""


LOOPBACK: Final = "127.0.0.1"
NOWHERE: Final = PodNetwork(infra_pid=-1)
"""The network of a pod without a sandbox that runs."""


def pod_network(status: RuntimePodStatus, host_ips: tuple[str, ...] = ()) -> PodNetwork:
    """Where the pod's newest sandbox is reached. ``host_ips``: the addresses of pods in the host's network; of a host
    without any its loopback is asked."""
    host_ip = next(iter(host_ips), "")
    ready = next((sandbox for sandbox in status.sandboxes if sandbox.state is SandboxState.READY), None)
    if ready is None:
        return NOWHERE
    if ready.host_network:
        return PodNetwork(ip=host_ip or LOOPBACK)
    if not ready.infra_start_ticks:
        return NOWHERE
    return PodNetwork(
        infra_pid=ready.infra_pid,
        infra_start_ticks=ready.infra_start_ticks,
        ip=next(iter(sort_pod_ips(ready.ips, host_ip)), ""),
    )


class DialError(Exception):
    """No socket could be made there: the pod is gone, or the dialer does not answer in time."""


class DialTimeout(DialError):
    """Nobody who could make one has answered in time. That says nothing about the pod."""


class Dialer(Protocol):
    """Makes sockets in pods' networks; the caller connects them."""

    async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
        """A new TCP socket in that network, not blocking, not connected; the caller's. Raises DialError.

        It belongs to the namespace in which it was made, whoever uses it. Each call has a deadline of its own.
        """
