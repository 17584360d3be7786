"""Network of a sandbox, as a sync knows it. Pure."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.network.pod_ips import sort_pod_ips
from workers.kubecontainer.runtime import InspectedContainer


class SandboxNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """Network of the sandbox in which a sync starts containers."""

    infra: str = ""
    """Id or name of its infra container."""
    ips: tuple[str, ...] = ()
    """IPs of the pod, as in its status."""
    pid: int = 0
    """Pid of that container's process; 0 when it is not known."""
    resolv_conf: str | None = None
    """Path of the resolv.conf that Podman has written for it, empty when it has written none; None as long as Podman
    has not been asked."""


def seen_network(pod: Pod, status: RuntimePodStatus, sandbox_id: str, host_ips: tuple[str, ...]) -> SandboxNetwork:
    """Network of a sandbox that existed when the sync began."""
    for sandbox in status.sandboxes:
        if sandbox.id == sandbox_id:
            return SandboxNetwork(
                infra=sandbox.infra_id, ips=_pod_ips(pod, sandbox.ips, host_ips), pid=sandbox.infra_pid
            )
    return SandboxNetwork()


def made_network(pod: Pod, infra: str, found: InspectedContainer | None, host_ips: tuple[str, ...]) -> SandboxNetwork:
    """Network of a sandbox that was just made; ``found`` is its infra container, None when no inspect was needed."""
    if found is None:
        return SandboxNetwork(infra=infra, ips=_pod_ips(pod, (), host_ips))
    ips = _pod_ips(pod, found.ips, host_ips)
    return SandboxNetwork(infra=infra, ips=ips, pid=found.pid, resolv_conf=found.resolv_conf)


def _pod_ips(pod: Pod, of_sandbox: tuple[str, ...], host_ips: tuple[str, ...]) -> tuple[str, ...]:
    """determinePodSandboxIPs and generateAPIPodStatus: a pod in the host's network has the host's."""
    if pod.spec.host_network:
        return host_ips
    return sort_pod_ips(of_sandbox, next(iter(host_ips), ""))
