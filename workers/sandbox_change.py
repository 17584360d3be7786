"""Whether a pod needs another sandbox. Pure."""

from __future__ import annotations

import msgspec

from ipc.api import Pod
from ipc.hashing import sandbox_hash
from ipc.runtime import RuntimePodStatus, SandboxState


class SandboxChange(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the pod needs another sandbox, and which."""

    reason: str
    """Empty: the newest sandbox serves."""
    attempt: int
    sandbox_id: str
    redefined: bool = False
    """The manifest asks for another sandbox; otherwise the sandbox was lost."""


def pod_sandbox_changed(pod: Pod, status: RuntimePodStatus) -> SandboxChange:
    """pkg/kubelet/kuberuntime/util/util.go, PodSandboxChanged."""
    if not status.sandboxes:
        return SandboxChange(reason="no sandbox", attempt=0, sandbox_id="")
    newest, attempt = status.sandboxes[0], status.sandboxes[0].attempt + 1
    ready = sum(sandbox.state is SandboxState.READY for sandbox in status.sandboxes)
    if ready > 1:
        return SandboxChange(reason=f"{ready} sandboxes are ready", attempt=attempt, sandbox_id=newest.id)
    if newest.state is not SandboxState.READY:
        return SandboxChange(reason="sandbox is not ready", attempt=attempt, sandbox_id=newest.id)
    if newest.host_network != pod.spec.host_network:
        return SandboxChange(reason="network mode changed", attempt=attempt, sandbox_id="", redefined=True)
    if newest.hash != sandbox_hash(pod):
        return SandboxChange(reason="sandbox definition changed", attempt=attempt, sandbox_id=newest.id, redefined=True)
    return SandboxChange(reason="", attempt=newest.attempt, sandbox_id=newest.id)
