"""What a sync knows of its sandbox's network. Pure."""

from __future__ import annotations

import msgspec

from ipc.api import Pod
from ipc.pod_ips import sort_pod_ips
from ipc.runtime import RuntimePodStatus


class SandboxNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """Of the sandbox that the sync starts containers in."""

    infra: str = ""
    """Id or name of its infra container."""
    ips: tuple[str, ...] = ()
    """The pod's, as its status tells them."""


def seen_network(pod: Pod, status: RuntimePodStatus, sandbox_id: str, host_ip: str) -> SandboxNetwork:
    """Of a sandbox that was there when the sync began."""
    for sandbox in status.sandboxes:
        if sandbox.id == sandbox_id:
            return SandboxNetwork(infra=sandbox.infra_id, ips=_pod_ips(pod, sandbox.ips, host_ip))
    return SandboxNetwork()


def made_network(pod: Pod, infra: str, of_sandbox: tuple[str, ...], host_ip: str) -> SandboxNetwork:
    """Of a sandbox that was just made."""
    return SandboxNetwork(infra=infra, ips=_pod_ips(pod, of_sandbox, host_ip))


def _pod_ips(pod: Pod, of_sandbox: tuple[str, ...], host_ip: str) -> tuple[str, ...]:
    """determinePodSandboxIPs and generateAPIPodStatus: a pod in the host's network has the host's."""
    if pod.spec.host_network:
        return (host_ip,) if host_ip else ()
    return sort_pod_ips(of_sandbox, host_ip)
