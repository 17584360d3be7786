"""The postStart hook: part of a container's start.

Mirrors the last part of startContainer (pkg/kubelet/kuberuntime/kuberuntime_container.go). The preStop hook is a part
of `workers.kuberuntime.kill_container`.
"""

from __future__ import annotations

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from ipc.link.messages import event_reasons
from workers.compute.grace_period import KillReason
from workers.compute.kill_spec import kill_of
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.kuberuntime.kill_container import kill_container
from workers.lifecycle.handlers import HandlerRunner, HookFailed, HookTarget
from workers.podhttp.hook_ports import with_port_number
from workers.sync.run import SyncRun

"""The reason with which a start fails whose hook has failed."""


class PostStartHookFailed(Exception):
    """The container's postStart hook has failed, and the container was stopped. The message has no output of the
    hook."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


async def run_post_start(run: SyncRun, handlers: HandlerRunner, pod: Pod, container: Container, id: str) -> None:
    """Run the postStart hook of a container that was just started, if it has one.

    When the hook fails, an event is sent and the container is stopped. Raises PostStartHookFailed then, and SyncEnded:
    a cancelled sync does not wait for the hook, because it is cancelled for the pod to stop.
    """
    hook = container.lifecycle.post_start if container.lifecycle is not None else None
    if hook is None:
        return
    run.step(f"postStart of {container.name}")
    try:
        target = HookTarget(id, container.name)
        await run.unless_cancelled(handlers.run, run, with_port_number(hook, container), target)
    except HookFailed as failed:
        await run.event(event_reasons.FAILED_POST_START_HOOK, "PostStartHook failed", container.name)
        await _kill(run, handlers, pod, container, id)
        raise PostStartHookFailed(failed.message) from failed


async def _kill(run: SyncRun, handlers: HandlerRunner, pod: Pod, container: Container, id: str) -> None:
    """Raises SyncEnded."""
    try:
        found = await run.read(run.runtime.inspect_container, id)
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise PostStartHookFailed(f"and the container cannot be inspected: {error.message}") from error
        return
    target = RuntimeContainerStatus(
        id=id,
        name=container.name,
        attempt=0,
        state=ContainerState.RUNNING,
        pid=found.pid,
        stop_signal=found.stop_signal,
    )
    reason = KillReason.FAILED_POST_START_HOOK
    await kill_container(run, handlers, kill_of(pod, target, container, reason, reason.value))
