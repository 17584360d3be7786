"""Replacements that wait until their images are there, while what they replace goes on. Pure.

Different on purpose: upstream stops what an edited manifest no longer states, and then pulls. A node without another
one beside it would have an outage for each typo in a tag (``keepUntilImagesPulled`` restores upstream's order).
"""

from __future__ import annotations

from collections.abc import Set

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus, SandboxState
from workers.compute.types import PodActions


def needed_before_stops(pod: Pod, status: RuntimePodStatus, actions: PodActions) -> tuple[str, ...]:
    """Names of the containers whose images have to be there before anything that runs is stopped."""
    if _gives_up_sandbox(status, actions):
        return tuple(container.name for container in (*pod.spec.init_containers, *pod.spec.containers))
    starts = (*actions.init_containers_to_start, *actions.containers_to_start)
    return tuple(start.name for start in starts if start.replaces)


def without_replacements(status: RuntimePodStatus, actions: PodActions, missing: Set[str]) -> PodActions:
    """The actions without those on containers that go on because images of these are missing: all of them where the
    pod would get another sandbox."""
    if not missing:
        return actions
    if _gives_up_sandbox(status, actions):
        newest = status.sandboxes[0]
        reason = f"{actions.reason}, but the pod goes on until its images are there"
        return PodActions(reason=reason, sandbox_id=newest.id, attempt=newest.attempt)
    put_off = [
        start for start in (*actions.init_containers_to_start, *actions.containers_to_start) if start.name in missing
    ]
    kept = {start.replaces for start in put_off}
    return msgspec.structs.replace(
        actions,
        containers_to_kill=tuple(kill for kill in actions.containers_to_kill if kill.id not in kept),
        init_containers_to_start=tuple(start for start in actions.init_containers_to_start if start not in put_off),
        containers_to_start=tuple(start for start in actions.containers_to_start if start not in put_off),
    )


def _gives_up_sandbox(status: RuntimePodStatus, actions: PodActions) -> bool:
    """Whether a sandbox that serves what runs is replaced for the manifest's sake."""
    ready = [sandbox for sandbox in status.sandboxes if sandbox.state is SandboxState.READY]
    replaces = actions.kill_pod and actions.create_sandbox and status.has_running_containers()
    return replaces and len(ready) == 1 and ready[0] is status.sandboxes[0]
