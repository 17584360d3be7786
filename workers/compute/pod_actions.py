"""Decision of a sync: actions on a pod's sandbox and containers, from its manifest and its observed status.

Mirrors computePodActions (pkg/kubelet/kuberuntime/kuberuntime_manager.go). Different on purpose:

- the crash-loop back-off is part of the decision, because its state is in what was observed
(``workers.compute.crash_loop_backoff``);
- a sandbox whose definition changed is re-created, and a container whose definition changed is made anew in every
  state and under every restart policy: an edited manifest is an update, and a sync that died between killing and
  starting comes to the same end as one that did not (``workers.compute.init_containers`` says what that means for
  them);
- a container that was created and never started is started as it is, instead of being replaced;
- whatever runs beside the one container of a name (twice, outside the pod's sandbox, unknown to the manifest) is
  stopped and removed here, and so are dead containers and sandboxes that nothing needs any more (upstream: container
  garbage collection, once a minute);
- a sandbox without an IP address is fine: rootless networks give none that the host could see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.k8s.kubecontainer.resize import Actuated, resize_judge
from ipc.k8s.kubecontainer.restart_policy import should_all_containers_restart
from ipc.link.eventloop.backoff import Backoff
from workers.compute.container_actions import (
    ContainerAction,
    is_redefined,
    kills_of,
    start_or_wait,
    starts_of,
    updates_of,
    waits_of,
)
from workers.compute.init_containers import (
    InitActions,
    compute_init_container_actions,
    has_failed_for_good,
    left_to_run,
)
from workers.compute.kill_spec import ALIVE
from workers.compute.pruning import (
    dead_containers,
    empty_sandboxes,
    prune_init_containers,
    purge_init_containers,
    strays,
)
from workers.compute.regular_containers import judge_ephemeral, judge_regular
from workers.compute.resize import PodResize, pod_resize
from workers.compute.restart_all import containers_to_reset, waiting_triggers
from workers.compute.sandbox_change import pod_sandbox_changed
from workers.compute.types import DecisionInput, PodActions

ONE_DEAD: Final = GcPolicy()
"""The newest dead container of each name."""


def compute_pod_actions(
    pod: Pod,
    status: RuntimePodStatus,
    now_wall: float,
    limits: Backoff,
    *,
    probe_results: Mapping[str, ProbeResults] | None = None,
    restarting_all: bool = False,
    gc: GcPolicy = ONE_DEAD,
    dead_containers: Iterable[str] = (),
    actuated: Actuated | None = None,
    controllers: frozenset[str] = frozenset(),
    restarts: Mapping[str, int | None] | None = None,
) -> PodActions:
    """The decision of one sync. ``now_wall`` in epoch seconds. ``restarting_all``: a restart of all containers has
    begun and not come to its end. ``controllers``: by which resources can be changed in place. The rest as in
    `DecisionInput`."""
    resize = resize_judge(pod, status, actuated or {}, controllers)
    change = pod_sandbox_changed(pod, status, resize)
    given = DecisionInput(
        pod=pod,
        status=status,
        change=change,
        now_wall=now_wall,
        limits=limits,
        probe_results=probe_results or {},
        gc=gc,
        dead_containers=frozenset(dead_containers),
        resize=resize,
        restarts=restarts or {},
    )
    if should_all_containers_restart(pod.spec, status, restarting_all):
        return _restart_all(given)
    return _with_new_sandbox(given) if change.reason else _in_sandbox(given)


def _restart_all(given: DecisionInput) -> PodActions:
    """Only the way down. What has nothing left waits for the master to see that (``restarting_all``), lest the
    restart that has ended be taken for one that goes on."""
    waiting = waiting_triggers(given)
    if waiting:
        return PodActions(
            reason="all containers have to restart, but not yet",
            sandbox_id=given.change.sandbox_id,
            attempt=given.change.attempt,
            waiting=waiting,
        )
    lost = bool(given.change.reason)
    return PodActions(
        reason="all containers have to restart",
        kill_pod=lost,
        create_sandbox=lost,
        sandbox_id=given.change.sandbox_id,
        attempt=given.change.attempt,
        containers_to_reset=containers_to_reset(given),
    )


# --- the sandbox has to be made (again) --------------------------------------------------------------------------


def _with_new_sandbox(given: DecisionInput) -> PodActions:
    """Everything that still runs is killed; what is not done for good starts again in the next sandbox."""
    pod, status, change = given.pod, given.status, given.change
    kill_only = PodActions(
        reason=f"{change.reason}, the pod is done",
        kill_pod=True,
        sandbox_id=change.sandbox_id,
        attempt=change.attempt,
    )
    wanted = [c for c in pod.spec.containers if change.redefined or not _is_done(given, c)]
    has_run = any(status.newest(container.name) for container in pod.spec.containers)
    if _never_again(given) or (has_run and not wanted):
        return msgspec.structs.replace(kill_only, containers_to_remove=_too_many_on_the_node(given))
    left = left_to_run(given)
    first = [start_or_wait(given, container) for container in left[:1]]
    others = [] if first else [start_or_wait(given, container) for container in wanted]
    waiting = waits_of(first + others)
    return msgspec.structs.replace(
        kill_only,
        reason=change.reason,
        init_containers_to_prune=purge_init_containers(left, status, {wait.name for wait in waiting}),
        create_sandbox=True,
        init_containers_to_start=starts_of(first),
        containers_to_start=starts_of(others),
        waiting=waiting,
    )


def _too_many_on_the_node(given: DecisionInput) -> tuple[RuntimeContainerStatus, ...]:
    """Dead containers that the node wants removed: nothing else ever does, of a pod that is done."""
    return tuple(c for c in dead_containers(given, frozenset()) if c.id in given.dead_containers)


def _never_again(given: DecisionInput) -> bool:
    """A pod that restarts nothing and has begun gets no second sandbox in place of a lost one. Where nothing is left of
    what has begun, it goes on with the rest (`_is_done`, `left_to_run`), unless an init container has failed."""
    if given.pod.spec.restart_policy != "Never" or given.change.redefined:
        return False
    has_begun = given.change.attempt != 0 and not all(map(given.is_lost, given.status.containers))
    return has_begun or has_failed_for_good(given)


def _is_done(given: DecisionInput, container: Container) -> bool:
    """Succeeded, and its policy (or else the pod's) is OnFailure; or ended, in a pod that restarts nothing and in a
    sandbox of which nothing is left, and nobody wants it to begin anew."""
    pod, newest = given.pod, given.status.newest(container.name)
    if newest is None or newest.state is not ContainerState.EXITED or newest.id in given.restarts:
        return False
    if newest.exit_code == 0 and (container.restart_policy or pod.spec.restart_policy) == "OnFailure":
        return True
    is_over = pod.spec.restart_policy == "Never" and (given.is_lost(newest) or not given.status.sandboxes)
    return is_over and not is_redefined(given, container, newest)


# --- the sandbox serves ------------------------------------------------------------------------------------------


def _in_sandbox(given: DecisionInput) -> PodActions:
    init = compute_init_container_actions(given)
    regular = [judge_regular(given, c) for c in given.pod.spec.containers] if init.initialized() else []
    done = init.failed or (init.initialized() and not any(action.lives_on() for action in regular))
    plan = PodActions(
        reason=init.reason or _found(regular),
        kill_pod=done,
        containers_to_kill=kills_of([*init.actions, *regular]) + strays(given),
        sandbox_id=given.change.sandbox_id,
        attempt=given.change.attempt,
    )
    if not done:
        plan = _with_starts(given, plan, init, regular)
    return _without_the_unneeded(given, plan)


def _found(regular: list[ContainerAction]) -> str:
    return f"{sum(action.keep for action in regular)} of {len(regular)} containers as they should be"


def _with_starts(
    given: DecisionInput, plan: PodActions, init: InitActions, regular: list[ContainerAction]
) -> PodActions:
    """Sidecars do not keep a pod alive whose regular containers are done, so they start only beside others."""
    ephemeral = [judge_ephemeral(given, container) for container in given.pod.spec.ephemeral_containers]
    killed = {kill.id for kill in plan.containers_to_kill}
    return msgspec.structs.replace(
        plan,
        containers_to_reset=tuple(reset for reset in init.resets if reset.container.id not in killed),
        ephemeral_containers_to_start=starts_of(ephemeral),
        init_containers_to_start=starts_of(init.actions),
        containers_to_start=starts_of(regular),
        waiting=waits_of([*ephemeral, *init.actions, *regular]),
        resize=_resize(given, [*init.actions, *regular]),
    )


def _resize(given: DecisionInput, actions: Sequence[ContainerAction]) -> PodResize:
    restarted = any(action.restarts_for_resize for action in actions)
    return pod_resize(updates_of(actions), restarted=restarted, pod_level=given.resize.is_pod_level)


def _without_the_unneeded(given: DecisionInput, plan: PodActions) -> PodActions:
    starts = (*plan.ephemeral_containers_to_start, *plan.init_containers_to_start, *plan.containers_to_start)
    reset_ids = {reset.container.id for reset in plan.containers_to_reset}
    pruned = tuple(
        c for c in prune_init_containers(given.pod.spec, given.status) if c.state not in ALIVE and c.id not in reset_ids
    )
    going_ids = {c.id for c in pruned} | reset_ids
    dead = dead_containers(given, {start.created_id for start in starts} | going_ids)
    going_ids |= {c.id for c in dead} | {kill.id for kill in plan.containers_to_kill if kill.remove}
    sandboxes = empty_sandboxes(given, going_ids)
    gone_ids = {sandbox.id for sandbox in sandboxes}
    return msgspec.structs.replace(
        plan,
        init_containers_to_prune=pruned,
        containers_to_remove=tuple(c for c in dead if c.sandbox_id not in gone_ids),
        sandboxes_to_remove=sandboxes,
    )
