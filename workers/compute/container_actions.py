"""Actions on one container, shared by the decisions on containers of all kinds. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.kubecontainer.hashing import is_made_from
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.k8s.kubecontainer.resize import ContainerUpdate
from workers.compute.crash_loop_backoff import do_backoff
from workers.compute.grace_period import KillReason
from workers.compute.kill_spec import ContainerKill, kill_of
from workers.compute.types import ContainerStart, ContainerWait, DecisionInput

_T = TypeVar("_T")


class ContainerAction(msgspec.Struct, frozen=True, kw_only=True):
    """Action on one container of the manifest. Nothing set: there is nothing to do for it."""

    keep: bool = False
    start: ContainerStart | None = None
    wait: ContainerWait | None = None
    kill: ContainerKill | None = None
    update: ContainerUpdate | None = None
    """Other resources for it, while it goes on."""
    restarts_for_resize: bool = False

    def lives_on(self) -> bool:
        """Whether the container runs or will run."""
        return self.keep or self.start is not None or self.wait is not None


def start_or_wait(given: DecisionInput, container: Container) -> ContainerAction:
    """A new container, now or when its back-off is over (kuberuntime_manager.go, doBackOff: for every kind but
    ephemeral ones, and whatever the exit code). One that somebody wants to begin anew does so now, and its back-off at
    the beginning."""
    newest = given.status.newest(container.name)
    if newest is not None and newest.id in given.restarts:
        return ContainerAction(start=ContainerStart(name=container.name, attempt=newest.attempt + 1, backoff_s=0.0))
    known = newest.hash if newest is not None and _is_the_same(given, container, newest) else ""
    decision = do_backoff(container.name, known, given.status, given.now_wall, given.limits)
    if decision.retry_at:
        return ContainerAction(
            wait=ContainerWait(name=container.name, backoff_s=decision.backoff_s, retry_at=decision.retry_at)
        )
    attempt = newest.attempt + 1 if newest is not None else 0
    return ContainerAction(start=ContainerStart(name=container.name, attempt=attempt, backoff_s=decision.backoff_s))


def _is_the_same(given: DecisionInput, container: Container, made: RuntimeContainerStatus) -> bool:
    """In all that resets a back-off when it changes (pkg/kubelet/kuberuntime, GetBackoffKey: resources too)."""
    return not is_redefined(given, container, made) and given.resize.update_of(container, made) is None


def keep_or_resize(given: DecisionInput, container: Container, running: RuntimeContainerStatus) -> ContainerAction:
    """A container that goes on, with other resources if it is to have them (computePodResizeAction)."""
    update = given.resize.update_of(container, running)
    if update is None or not given.resize.needs_restart(container, update):
        return ContainerAction(keep=True, update=update)
    message = f"Container {container.name} resize requires restart"
    action = replace(given, container, running, KillReason.NONE, message)
    return msgspec.structs.replace(action, restarts_for_resize=True)


def replace(
    given: DecisionInput, container: Container, old: RuntimeContainerStatus, reason: KillReason, why: str
) -> ContainerAction:
    """Kill the old one and make a new one."""
    kill = kill_of(given.pod, old, container, reason, why)
    return msgspec.structs.replace(start_or_wait(given, container), kill=kill)


def redefine(
    given: DecisionInput, container: Container, running: RuntimeContainerStatus, message: str
) -> ContainerAction:
    """Replace one that runs and is as it should be, but for the manifest."""
    action = replace(given, container, running, KillReason.NONE, message)
    if action.start is None:
        return action
    return msgspec.structs.replace(action, start=msgspec.structs.replace(action.start, replaces=running.id))


def restart(given: DecisionInput, container: Container, old: RuntimeContainerStatus) -> ContainerAction:
    """Replace one that somebody wants to begin anew."""
    message = f"Container {container.name} is restarted, as somebody has asked for"
    action, grace_s = replace(given, container, old, KillReason.NONE, message), given.restarts[old.id]
    if action.kill is None or grace_s is None:
        return action
    return msgspec.structs.replace(action, kill=msgspec.structs.replace(action.kill, grace_period_s=grace_s))


def start_created(given: DecisionInput, container: Container, created: RuntimeContainerStatus) -> ContainerAction:
    """Somebody was interrupted between making and starting it: no crash, so nothing to wait for."""
    if not given.is_inside(created) or not _is_the_same(given, container, created):
        return start_or_wait(given, container)
    return ContainerAction(
        start=ContainerStart(
            name=created.name, attempt=created.attempt, backoff_s=created.backoff_s, created_id=created.id
        )
    )


def unknown_message(kind: str, container: RuntimeContainerStatus) -> str:
    """The message of a kill (kuberuntime_manager.go, computePodActions)."""
    return f'{kind} is in "{container.state}" state, try killing it before restart'


def is_redefined(given: DecisionInput, container: Container, made: RuntimeContainerStatus) -> bool:
    """The manifest asks for another one (kuberuntime_manager.go, containerChanged)."""
    return not is_made_from(made, given.pod.spec, container)


def starts_of(actions: Iterable[ContainerAction]) -> tuple[ContainerStart, ...]:
    return _present(action.start for action in actions)


def waits_of(actions: Iterable[ContainerAction]) -> tuple[ContainerWait, ...]:
    return _present(action.wait for action in actions)


def kills_of(actions: Iterable[ContainerAction]) -> tuple[ContainerKill, ...]:
    return _present(action.kill for action in actions)


def updates_of(actions: Iterable[ContainerAction]) -> tuple[ContainerUpdate, ...]:
    return _present(action.update for action in actions)


def _present(values: Iterable[_T | None]) -> tuple[_T, ...]:
    return tuple(value for value in values if value is not None)
