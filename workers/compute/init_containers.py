"""Actions on init containers while the sandbox is ready: run in order, and sidecars kept running. Pure.

Mirrors computeInitContainerActions (pkg/kubelet/kuberuntime/kuberuntime_container.go) and isInitContainerFailed
(helpers.go). The last init container that has a status says how far initialization came: those before it may have been
removed long ago. Different on purpose:

- which sandbox a container lies in is known here, so a status from an earlier sandbox says nothing of this one, and
  any regular container of this one says that initialization is over, also one that has exited;
- an init container whose definition changes before initialization is over runs anew, and so does what ran after it.
  Afterwards only sidecars follow their definition, each in place;
- one that was added among those that are done does not run before the pod begins anew, as if it had run and been
  removed: that looks the same;
- a pod that restarts nothing may lose its sandbox with everything in it. In the next sandbox it goes on where the
  record of ends says that it was (`left_to_run`). Upstream has no such record, and begins anew.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.kubecontainer.initialized import has_any_active_regular_container_started
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult
from ipc.k8s.kubecontainer.restart_policy import container_should_restart, is_restartable_init
from workers.compute.container_actions import (
    ContainerAction,
    is_redefined,
    keep_or_resize,
    redefine,
    replace,
    restart,
    start_created,
    start_or_wait,
    unknown_message,
)
from workers.compute.grace_period import KillReason
from workers.compute.kill_spec import ALIVE, ContainerKill, kill_of
from workers.compute.types import ContainerReset, DecisionInput

OOM_EXIT_CODE: Final = 137
"""Exit code of a container that ran out of memory and has none that says so."""


class InitActions(msgspec.Struct, frozen=True, kw_only=True):
    """Actions on the init containers."""

    reason: str = ""
    """How far initialization came, for people; empty when it is over."""
    failed: bool = False
    """For good: the pod is to be stopped."""
    actions: tuple[ContainerAction, ...] = ()
    """In the order of their start."""
    resets: tuple[ContainerReset, ...] = ()

    def initialized(self) -> bool:
        """Regular containers may start."""
        return not self.reason


def compute_init_container_actions(given: DecisionInput) -> InitActions:
    """kuberuntime_container.go, computeInitContainerActions."""
    if has_any_active_regular_container_started(given.pod.spec, given.status):
        containers = given.pod.spec.init_containers
        return InitActions(actions=(*_sidecars(given, containers), *_moved(given, containers)))
    left = left_to_run(given)
    begun = [index for index, container in enumerate(left) if given.inside(container.name) is not None]
    if not begun:
        first = tuple(start_or_wait(given, container) for container in left[:1])
        return InitActions(reason=_progress(given, left), actions=first)
    return _go_on(given, left, min(begun[-1], _first_redefined(given, left)))


def left_to_run(given: DecisionInput) -> tuple[Container, ...]:
    """Init containers that the newest sandbox, or the next one, has to see. Sidecars are among them in any case: they
    have to run beside the rest."""
    containers = given.pod.spec.init_containers
    passed = _lost_progress(given).passed
    return tuple(c for index, c in enumerate(containers) if index >= passed or is_restartable_init(c))


def has_failed_for_good(given: DecisionInput) -> bool:
    """Whether an init container had failed for good in the sandbox of which nothing is left."""
    return _lost_progress(given).failed


def is_init_container_failed(status: RuntimeContainerStatus) -> bool:
    """helpers.go, isInitContainerFailed."""
    if status.oom_killed or status.state is ContainerState.UNKNOWN:
        return True
    return status.state is ContainerState.EXITED and status.exit_code != 0


class _LostProgress(msgspec.Struct, frozen=True):
    """How far initialization came in a sandbox of which nothing is left."""

    passed: int = 0
    """How many of the pod's init containers are behind it."""
    failed: bool = False
    """The next one, for good."""


def _lost_progress(given: DecisionInput) -> _LostProgress:
    """The progress that the record of ends tells, of a pod that restarts nothing. Runs before one that is done may be
    forgotten; a regular container that ran says that all are. A redefined sandbox begins anew: what ran before it is
    removed, and so forgotten, and of regular containers only a first attempt's say anything."""
    containers = given.pod.spec.init_containers
    if given.pod.spec.restart_policy != "Never" or given.change.redefined:
        return _LostProgress()
    mains = () if given.change.attempt else given.pod.spec.containers
    ran = ((main, _lost_run(given, main)) for main in mains)
    if any(run is not None and not is_redefined(given, main, run) for main, run in ran):
        return _LostProgress(len(containers))
    passed = 0
    for index, container in enumerate(containers):
        if is_restartable_init(container) or given.status.newest(container.name) is None:
            continue
        lost = _lost_run(given, container)
        step = _judge_plain(given, container, lost) if lost is not None else _Step()
        if not step.done:
            return _LostProgress(passed, step.failed)
        passed = index + 1
    return _LostProgress(passed)


def _lost_run(given: DecisionInput, container: Container) -> RuntimeContainerStatus | None:
    """The newest run, if nothing is left of it and of its sandbox."""
    newest = given.status.newest(container.name)
    return newest if newest is not None and given.is_lost(newest) else None


def _progress(given: DecisionInput, left: tuple[Container, ...]) -> str:
    """What is left of initialization, for people; empty when nothing is."""
    if not left:
        return ""
    containers = given.pod.spec.init_containers
    done = len(containers) - len(left)
    return f"{done} of {len(containers)} init containers done" if done else "nothing initialized yet"


def _first_redefined(given: DecisionInput, containers: tuple[Container, ...]) -> int:
    """Position of the first that ran and asks for another run; behind the last when there is none."""
    redefined = (index for index, container in enumerate(containers) if _runs_anew(given, container))
    return next(redefined, len(containers))


def _runs_anew(given: DecisionInput, container: Container) -> bool:
    newest = given.inside(container.name)
    return newest is not None and not is_restartable_init(container) and is_redefined(given, container, newest)


def _go_on(given: DecisionInput, containers: tuple[Container, ...], position: int) -> InitActions:
    """At that container: what is before it is done, what is behind it has not begun or is to begin anew."""
    current = containers[position]
    step = _judge(given, current)
    if step.failed:
        return InitActions(reason=f"init container {current.name} failed for good", failed=True)
    following = containers[position + 1 :]
    next_one = tuple(start_or_wait(given, container) for container in following[:1] if step.done)
    total = len(given.pod.spec.init_containers)
    left = len(containers) - position - step.done
    return InitActions(
        reason=f"{total - left} of {total} init containers done" if left else "",
        actions=(*_sidecars(given, containers[:position]), step.action, *next_one),
        resets=_resets(given, following, current.name),
    )


def _sidecars(given: DecisionInput, containers: tuple[Container, ...]) -> tuple[ContainerAction, ...]:
    """Actions on sidecars that have been started: each is kept running by itself."""
    return tuple(_judge(given, container).action for container in containers if is_restartable_init(container))


def _moved(given: DecisionInput, containers: tuple[Container, ...]) -> tuple[ContainerAction, ...]:
    """Kills of containers that run from before the manifest made init containers of them."""
    running = ((c, given.inside(c.name)) for c in containers if not is_restartable_init(c))
    return tuple(
        ContainerAction(kill=kill_of(given.pod, old, c, KillReason.NONE, f"Init container {c.name} definition changed"))
        for c, old in running
        if old is not None and old.state in ALIVE and is_redefined(given, c, old)
    )


def _resets(given: DecisionInput, containers: tuple[Container, ...], after: str) -> tuple[ContainerReset, ...]:
    """Resets of containers still to come, of all their runs; oldest first: the newest says which attempt is next."""
    names = {container.name: container for container in containers}
    return tuple(
        ContainerReset(container=ran, kill=_reset_kill(given, names[ran.name], ran, after))
        for ran in reversed(given.status.containers)
        if ran.name in names and given.is_inside(ran)
    )


def _reset_kill(
    given: DecisionInput, container: Container, ran: RuntimeContainerStatus, after: str
) -> ContainerKill | None:
    message = f"Init container {ran.name} begins again after {after}"
    return kill_of(given.pod, ran, container, KillReason.NONE, message) if ran.state in ALIVE else None


# --- one container -----------------------------------------------------------------------------------------------


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """How initialization stands with one container."""

    done: bool = False
    """The next one may start."""
    failed: bool = False
    """For good."""
    action: ContainerAction = ContainerAction()


def _judge(given: DecisionInput, container: Container) -> _Step:
    newest = given.inside(container.name)
    if newest is None:
        return _Step(action=start_or_wait(given, container))
    if newest.state is ContainerState.CREATED:
        return _Step(action=start_created(given, container, newest))
    judge = _judge_sidecar if is_restartable_init(container) else _judge_plain
    return judge(given, container, newest)


def _judge_plain(given: DecisionInput, container: Container, newest: RuntimeContainerStatus) -> _Step:
    """One that has to come to its end."""
    if is_redefined(given, container, newest):
        return _Step(action=_anew(given, container, newest))
    if newest.state is ContainerState.RUNNING:
        return _Step(action=keep_or_resize(given, container, newest))
    if not is_init_container_failed(newest):
        return _Step(done=True)
    if not _may_try_again(given, container, newest):
        return _Step(failed=True)
    return _Step(action=_anew(given, container, newest))


def _may_try_again(given: DecisionInput, container: Container, failed: RuntimeContainerStatus) -> bool:
    """Without an exit code its policy decides and no rule."""
    if failed.state is ContainerState.UNKNOWN:
        return (container.restart_policy or given.pod.spec.restart_policy) != "Never"
    return container_should_restart(container, given.pod.spec, failed.exit_code or OOM_EXIT_CODE)


def _judge_sidecar(given: DecisionInput, container: Container, newest: RuntimeContainerStatus) -> _Step:
    """One that is done as soon as it has started, and starts again whenever it ends."""
    if newest.state is not ContainerState.RUNNING:
        return _Step(action=_anew(given, container, newest))
    return _judge_running_sidecar(given, container, newest)


def _judge_running_sidecar(given: DecisionInput, container: Container, newest: RuntimeContainerStatus) -> _Step:
    """Step of a running sidecar, whose liveness does not keep the next one from starting."""
    actions = given.probe_results_of(newest)
    started = actions.has_started(container)
    if newest.id in given.restarts:
        return _Step(done=started, action=restart(given, container, newest))
    if is_redefined(given, container, newest):
        message = f"Init container {container.name} definition changed"
        if ProbeResult.FAILURE in (actions.liveness, actions.startup):
            return _Step(done=started, action=replace(given, container, newest, KillReason.NONE, message))
        return _Step(done=started, action=redefine(given, container, newest, message))
    if not started and actions.startup is ProbeResult.FAILURE:
        message = f"Init container {container.name} failed startup probe"
        return _Step(action=replace(given, container, newest, KillReason.STARTUP_PROBE, message))
    if started and container.liveness_probe is not None and actions.liveness is ProbeResult.FAILURE:
        message = f"Init container {container.name} failed liveness probe"
        return _Step(done=True, action=replace(given, container, newest, KillReason.LIVENESS_PROBE, message))
    return _Step(done=started, action=keep_or_resize(given, container, newest))


def _anew(given: DecisionInput, container: Container, newest: RuntimeContainerStatus) -> ContainerAction:
    """Made again; one that may be running is killed first."""
    if newest.state is ContainerState.UNKNOWN:
        return replace(given, container, newest, KillReason.UNKNOWN, unknown_message("Init container", newest))
    if newest.state is ContainerState.RUNNING:
        message = f"Init container {container.name} definition changed"
        return replace(given, container, newest, KillReason.NONE, message)
    return start_or_wait(given, container)
