"""What has to be done to a pod's sandbox and containers, decided from what is wanted and what was observed.

Mirrors computePodActions (pkg/kubelet/kuberuntime/kuberuntime_manager.go) and PodSandboxChanged
(pkg/kubelet/kuberuntime/util/util.go). Different on purpose:

- the crash-loop back-off is part of the decision, because its state is in what was observed (``workers.restart``);
- a sandbox whose definition changed is re-created, and a container whose definition changed is made anew in every
  state and under every restart policy: an edited manifest is an update, and a sync that died between killing and
  starting comes to the same end as one that did not;
- a container that was created and never started is started as it is, instead of being replaced;
- whatever runs beside the one container of a name (twice, outside the pod's sandbox, unknown to the manifest) is
  stopped and removed here, and so are dead containers and sandboxes that nothing needs any more (upstream: container
  garbage collection, once a minute);
- a sandbox without an IP address is fine: rootless networks give none that the host could see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from ipc.api import Container, Pod
from ipc.container_gc import evict_sandboxes
from ipc.restart_policy import should_container_be_restarted
from ipc.runtime import ContainerState, RuntimeContainerStatus, RuntimePodStatus, SandboxState, SandboxStatus
from workers.hashing import container_hash, sandbox_hash
from workers.kills import ALIVE, ContainerKill, kill_of
from workers.restart import BackoffLimits, do_backoff
from workers.termination import KillReason

_T = TypeVar("_T")


class ContainerStart(msgspec.Struct, frozen=True, kw_only=True):
    """Make a container and start it, or start one that was made and never started."""

    name: str
    attempt: int
    backoff_s: float
    """For its label: how long its end must lie back before its successor starts."""
    created_id: str = ""
    """The container that is only waiting to be started; empty when it has to be made."""


class ContainerWait(msgspec.Struct, frozen=True, kw_only=True):
    """A container that would start if its back-off were over."""

    name: str
    backoff_s: float
    retry_at: float
    """Wall time of the next try."""


class PodActions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one sync does, in the order of the fields."""

    reason: str
    """What was found, for people."""
    kill_pod: bool = False
    """Stop every container and every sandbox first."""
    containers_to_kill: tuple[ContainerKill, ...] = ()
    create_sandbox: bool = False
    sandbox_id: str = ""
    """The sandbox to use, or the one that is replaced (its loss is worth an event when not empty)."""
    attempt: int = 0
    """Of the sandbox to create."""
    containers_to_start: tuple[ContainerStart, ...] = ()
    waiting: tuple[ContainerWait, ...] = ()
    containers_to_remove: tuple[RuntimeContainerStatus, ...] = ()
    sandboxes_to_remove: tuple[SandboxStatus, ...] = ()
    """Each with everything in it."""

    def is_empty(self) -> bool:
        """Nothing to do, though something may be waiting."""
        return self == PodActions(
            reason=self.reason, sandbox_id=self.sandbox_id, attempt=self.attempt, waiting=self.waiting
        )


def compute_pod_actions(pod: Pod, status: RuntimePodStatus, now_wall: float, limits: BackoffLimits) -> PodActions:
    """The decision of one sync. ``now_wall`` in epoch seconds."""
    change = pod_sandbox_changed(pod, status)
    decide = _with_new_sandbox if change.reason else _in_sandbox
    return decide(_Input(pod=pod, status=status, change=change, now_wall=now_wall, limits=limits))


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
    newest, ready = status.sandboxes[0], _ready(status)
    attempt = newest.attempt + 1
    if len(ready) > 1:
        return SandboxChange(reason=f"{len(ready)} sandboxes are ready", attempt=attempt, sandbox_id=newest.id)
    if newest.state is not SandboxState.READY:
        return SandboxChange(reason="sandbox is not ready", attempt=attempt, sandbox_id=newest.id)
    if newest.host_network != pod.spec.host_network:
        return SandboxChange(reason="network mode changed", attempt=attempt, sandbox_id="", redefined=True)
    if newest.hash != sandbox_hash(pod):
        return SandboxChange(reason="sandbox definition changed", attempt=attempt, sandbox_id=newest.id, redefined=True)
    return SandboxChange(reason="", attempt=newest.attempt, sandbox_id=newest.id)


def _ready(status: RuntimePodStatus) -> list[SandboxStatus]:
    return [sandbox for sandbox in status.sandboxes if sandbox.state is SandboxState.READY]


class _Input(msgspec.Struct, frozen=True, kw_only=True):
    """What the decision is made from."""

    pod: Pod
    status: RuntimePodStatus
    change: SandboxChange
    now_wall: float
    limits: BackoffLimits

    @property
    def sandbox(self) -> SandboxStatus:
        """The newest one."""
        return self.status.sandboxes[0]


# --- the sandbox has to be made (again) --------------------------------------------------------------------------


def _with_new_sandbox(given: _Input) -> PodActions:
    """Everything that still runs is killed; what is not done for good starts again in the next sandbox."""
    pod, status, change = given.pod, given.status, given.change
    kill_only = PodActions(
        reason=f"{change.reason}, the pod is done",
        kill_pod=True,
        sandbox_id=change.sandbox_id,
        attempt=change.attempt,
    )
    if _never_again(given):
        return kill_only
    wanted = [c for c in pod.spec.containers if change.redefined or not _succeeded(c, pod, status)]
    if not wanted and any(status.newest(container.name) for container in pod.spec.containers):
        return kill_only
    verdicts = [_start_or_wait(given, container) for container in wanted]
    return msgspec.structs.replace(
        kill_only,
        reason=change.reason,
        create_sandbox=True,
        containers_to_start=_present(verdict.start for verdict in verdicts),
        waiting=_present(verdict.wait for verdict in verdicts),
    )


def _never_again(given: _Input) -> bool:
    """A pod that restarts nothing and has begun does not get a second sandbox in place of a lost one."""
    lost = given.change.attempt != 0 and not given.change.redefined
    return lost and given.pod.spec.restart_policy == "Never" and bool(given.status.containers)


def _succeeded(container: Container, pod: Pod, status: RuntimePodStatus) -> bool:
    """Done, and its policy (or else the pod's) is OnFailure."""
    newest = status.newest(container.name)
    if newest is None or newest.state is not ContainerState.EXITED or newest.exit_code != 0:
        return False
    return (container.restart_policy or pod.spec.restart_policy) == "OnFailure"


# --- the sandbox serves ------------------------------------------------------------------------------------------


class _Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """On one container of the manifest. Nothing set: it is done."""

    keep: bool = False
    start: ContainerStart | None = None
    wait: ContainerWait | None = None
    kill: ContainerKill | None = None


def _in_sandbox(given: _Input) -> PodActions:
    verdicts = [_judge(given, container) for container in given.pod.spec.containers]
    starts = _present(verdict.start for verdict in verdicts)
    waiting = _present(verdict.wait for verdict in verdicts)
    kills = _present(verdict.kill for verdict in verdicts) + _strays(given)
    kept = sum(verdict.keep for verdict in verdicts)
    removals = _removals(given, keep_ids={start.created_id for start in starts})
    sandboxes = _empty_sandboxes(given, {c.id for c in removals} | {kill.id for kill in kills if kill.remove})
    gone_ids = {sandbox.id for sandbox in sandboxes}
    return PodActions(
        reason=f"{kept} of {len(verdicts)} containers as they should be",
        kill_pod=not (kept or starts or waiting),
        containers_to_kill=kills,
        sandbox_id=given.change.sandbox_id,
        attempt=given.change.attempt,
        containers_to_start=starts,
        waiting=waiting,
        containers_to_remove=tuple(c for c in removals if c.sandbox_id not in gone_ids),
        sandboxes_to_remove=sandboxes,
    )


def _judge(given: _Input, container: Container) -> _Verdict:
    newest = given.status.newest(container.name)
    if newest is None or (newest.state in ALIVE and newest.sandbox_id != given.sandbox.id):
        return _start_or_wait(given, container)
    return _JUDGES[newest.state](given, container, newest)


def _judge_running(given: _Input, container: Container, newest: RuntimeContainerStatus) -> _Verdict:
    if newest.hash == container_hash(container):
        return _Verdict(keep=True)
    message = f"Container {container.name} definition changed, will be restarted"
    return _replaced(given, container, kill_of(given.pod, newest, container, KillReason.NONE, message))


def _judge_unknown(given: _Input, container: Container, newest: RuntimeContainerStatus) -> _Verdict:
    message = f'Container is in "{newest.state}" state, try killing it before restart'
    return _replaced(given, container, kill_of(given.pod, newest, container, KillReason.UNKNOWN, message))


def _judge_created(given: _Input, container: Container, newest: RuntimeContainerStatus) -> _Verdict:
    """Somebody was interrupted between making and starting it: no crash, so nothing to wait for."""
    if newest.sandbox_id != given.sandbox.id or newest.hash != container_hash(container):
        return _start_or_wait(given, container)
    start = ContainerStart(name=newest.name, attempt=newest.attempt, backoff_s=newest.backoff_s, created_id=newest.id)
    return _Verdict(start=start)


def _judge_exited(given: _Input, container: Container, newest: RuntimeContainerStatus) -> _Verdict:
    deleting = given.pod.metadata.deletion_timestamp is not None
    again = should_container_be_restarted(container, given.pod.spec, newest, deleting=deleting)
    edited = not deleting and _redefined(given, container, newest)
    return _start_or_wait(given, container) if again or edited else _Verdict()


_JUDGES: Final[Mapping[ContainerState, Callable[[_Input, Container, RuntimeContainerStatus], _Verdict]]] = {
    ContainerState.RUNNING: _judge_running,
    ContainerState.UNKNOWN: _judge_unknown,
    ContainerState.CREATED: _judge_created,
    ContainerState.EXITED: _judge_exited,
}


def _redefined(given: _Input, container: Container, ended: RuntimeContainerStatus) -> bool:
    """It ended for the manifest's sake (or before its change was seen), so the new definition has not run yet."""
    other_sandbox = any(s.id == ended.sandbox_id and s.hash != given.sandbox.hash for s in given.status.sandboxes)
    return other_sandbox or ended.hash != container_hash(container)


def _replaced(given: _Input, container: Container, kill: ContainerKill) -> _Verdict:
    return msgspec.structs.replace(_start_or_wait(given, container), kill=kill)


def _start_or_wait(given: _Input, container: Container) -> _Verdict:
    """A new container, now or when its back-off is over."""
    newest = given.status.newest(container.name)
    decision = do_backoff(container.name, container_hash(container), given.status, given.now_wall, given.limits)
    if decision.retry_at:
        return _Verdict(
            wait=ContainerWait(name=container.name, backoff_s=decision.backoff_s, retry_at=decision.retry_at)
        )
    attempt = newest.attempt + 1 if newest is not None else 0
    return _Verdict(start=ContainerStart(name=container.name, attempt=attempt, backoff_s=decision.backoff_s))


def _strays(given: _Input) -> tuple[ContainerKill, ...]:
    """What runs and is not the newest of its name in the sandbox."""
    return tuple(
        msgspec.structs.replace(kill_of(given.pod, c, None, KillReason.NONE, f"Container {c.name} {why}"), remove=True)
        for c in given.status.containers
        if c.state in ALIVE and (why := _why_stray(given, c))
    )


def _why_stray(given: _Input, container: RuntimeContainerStatus) -> str:
    if all(container.name != wanted.name for wanted in given.pod.spec.containers):
        return "is not part of the pod"
    if container.sandbox_id != given.sandbox.id:
        return "runs outside of the pod's sandbox"
    newest = given.status.newest(container.name)
    return "runs beside its successor" if newest is not None and newest.id != container.id else ""


# --- what nobody needs any more ----------------------------------------------------------------------------------


def _removals(given: _Input, keep_ids: Iterable[str]) -> tuple[RuntimeContainerStatus, ...]:
    """The dead, except the newest of each name: it holds exit code, restart count and log (CGC-07)."""
    last_dead = _present(_last_dead(given, container.name) for container in given.pod.spec.containers)
    kept = {c.id for c in last_dead} | set(keep_ids)
    return tuple(c for c in given.status.containers if c.state not in ALIVE and c.id not in kept)


def _last_dead(given: _Input, name: str) -> RuntimeContainerStatus | None:
    """The newest exited one; in an old sandbox only as long as nothing newer of that name is in the sandbox."""
    has_successor = False
    for container in given.status.containers:
        if container.name != name:
            continue
        inside = container.sandbox_id == given.sandbox.id
        if container.state is ContainerState.EXITED:
            return container if inside or not has_successor else None
        has_successor |= inside
    return None


def _empty_sandboxes(given: _Input, removed_ids: Iterable[str]) -> tuple[SandboxStatus, ...]:
    """Old sandboxes whose every container goes."""
    needed = {c.sandbox_id for c in given.status.containers if c.id not in set(removed_ids)}
    evicted = evict_sandboxes(given.status.sandboxes, needed, all_of_them=False)
    return tuple(s for s in given.status.sandboxes if s.id in evicted)


def _present(values: Iterable[_T | None]) -> tuple[_T, ...]:
    return tuple(value for value in values if value is not None)
