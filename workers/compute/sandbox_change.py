"""Whether a pod needs another sandbox. Pure."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.hashing import is_sandbox_made_from
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState
from ipc.k8s.kubecontainer.resize import ResizeJudge


class SandboxChange(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the pod needs another sandbox, and which."""

    reason: str
    """Empty: the newest sandbox serves."""
    attempt: int
    sandbox_id: str
    redefined: bool = False
    """The manifest asks for another sandbox; otherwise the sandbox was lost. Also of one that is not ready: a sync may
    have died between stopping it for that reason and making the next one."""


def pod_sandbox_changed(pod: Pod, status: RuntimePodStatus, resize: ResizeJudge) -> SandboxChange:
    """pkg/kubelet/kuberuntime/util/util.go, PodSandboxChanged."""
    if not status.sandboxes:
        return SandboxChange(reason="no sandbox", attempt=0, sandbox_id="")
    newest, ready = status.sandboxes[0], sum(sandbox.state is SandboxState.READY for sandbox in status.sandboxes)
    other_network = newest.host_network != pod.spec.host_network
    redefined = resize.needs_sandbox or not is_sandbox_made_from(newest, pod)
    reason, id = "", newest.id
    if ready > 1:
        reason = f"{ready} sandboxes are ready"
    elif newest.state is not SandboxState.READY:
        reason = "sandbox is not ready"
    elif other_network:
        reason, id = "network mode changed", ""
    elif redefined:
        reason = "sandbox definition changed"
    return SandboxChange(
        reason=reason, attempt=newest.attempt + bool(reason), sandbox_id=id, redefined=redefined or other_network
    )
