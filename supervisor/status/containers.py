"""Container statuses out of observed containers (pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses).

Different on purpose: the image and its id are kept while a container is between two attempts; one that was removed to
restart with all others says so until it is made again, not only in the first status after its removal; and the
attempt that a container carries is believed, so that an end that nobody saw counts once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import Container, RecursiveReadOnlyMode, ResourceRequirements, VolumeMount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import (
    ContainerState,
    ContainerStatus,
    ContainerUser,
    ImageVolumeStatus,
    VolumeMountStatus,
    VolumeStatus,
)
from ipc.k8s.kubecontainer.hashing import is_made_from
from ipc.k8s.kubecontainer.initialized import has_any_active_regular_container_started, passed_init_containers
from ipc.k8s.kubecontainer.pod_status import ContainerState as Observed
from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import NO_PROBE_RESULTS, ProbeResult, ProbeResults
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init, should_container_be_restarted
from ipc.link.messages.pod_worker import SyncResult
from supervisor.status import container_states as states
from supervisor.status.resources import container_status_resources


class ContainerStatusInput(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Inputs that the statuses of all containers of a pod share, and what follows from them for each."""

    pod: Pod
    observed: RuntimePodStatus
    reasons: Mapping[str, SyncResult] = {}
    """Container name -> why its last start failed."""
    probe_results: Mapping[str, ProbeResults] = {}
    """By container id; one without an entry has not been probed."""
    replaced: frozenset[str] = frozenset()
    """Names of containers that start again whatever their policy says."""
    terminating: bool = False
    restarting_all: bool = False
    """A RestartAllContainers rule has begun."""
    actuated: Mapping[str, ResourceRequirements] = {}
    """Resources that containers were given while they ran, by id."""

    @functools.cached_property
    def has_started(self) -> bool:
        """Whether a regular container was observed in the sandbox that serves now."""
        return has_any_active_regular_container_started(self.pod.spec, self.observed)

    @functools.cached_property
    def has_created(self) -> bool:
        """Whether some regular container was made and has not ended."""
        return has_any_regular_container_created(self.pod, self.observed)

    @functools.cached_property
    def is_over(self) -> bool:
        """Whether every regular container has ended, as it is wanted, and none starts again."""
        return not self.restarting_all and all(map(self._has_ended, self.pod.spec.containers))

    def _has_ended(self, container: Container) -> bool:
        spec, newest = self.pod.spec, self.observed.newest(container.name)
        if newest is None or container.name in self.replaced or not is_made_from(newest, spec, container):
            return False
        again = should_container_be_restarted(container, spec, newest, deleting=self.terminating)
        return newest.state is Observed.EXITED and not again

    @functools.cached_property
    def passed(self) -> frozenset[str]:
        """Names of the init containers that another one came after."""
        return passed_init_containers(self.pod.spec, self.observed)


def container_statuses(
    given: ContainerStatusInput,
    kind: ContainerKind,
    containers: Sequence[Container],
    previous: Sequence[ContainerStatus],
) -> tuple[ContainerStatus, ...]:
    """One status per container of one list of the spec: init containers in its order, all others by name."""
    before = {old.name: old for old in previous}
    made = (_container_status(given, kind, container, before.get(container.name)) for container in containers)
    return tuple(made) if kind is ContainerKind.INIT else tuple(sorted(made, key=lambda status: status.name))


def _container_status(
    given: ContainerStatusInput, kind: ContainerKind, container: Container, old: ContainerStatus | None
) -> ContainerStatus:
    seen = given.observed.of_name(container.name)
    status = _seen(given, seen, old) if seen else _unseen(given, container, old)
    is_done = kind is ContainerKind.INIT and _is_initialized(given, container, seen, status)
    if old is None:
        status = _with_lost_attempts(given, status, again=not (is_done or _starts_no_more(given, container, kind)))
    if not is_done:
        status = _with_reason(given, container, seen, status)
    elif not seen:
        status = msgspec.structs.replace(status, state=_INIT_LONG_GONE)
    status = _with_probes(given, kind, container, seen[0] if seen else None, status, old)
    resources = container_status_resources(kind, container, seen[0] if seen else None, given.actuated)
    return msgspec.structs.replace(
        status,
        volume_mounts=volume_mount_statuses(container, seen[0].image_volumes if seen else {}),
        allocated_resources=resources.allocated,
        resources=resources.actual,
    )


_INIT_LONG_GONE = states.ended_unseen(states.COMPLETED, states.INIT_LONG_GONE, exit_code=0)


# --- not in the runtime --------------------------------------------------------------------------------------------


def _unseen(given: ContainerStatusInput, container: Container, old: ContainerStatus | None) -> ContainerStatus:
    """Never made, or made and gone from the runtime."""
    fresh = states.waiting(states.POD_INITIALIZING if given.pod.spec.init_containers else states.CONTAINER_CREATING)
    if old is None:
        return ContainerStatus(name=container.name, image=container.image, state=fresh)
    never_ran = old.state == _INIT_LONG_GONE and not old.container_id
    is_restarting = given.restarting_all and not given.terminating
    if is_restarting and old.state.waiting is None and not never_ran:
        return _removed_to_restart(old)
    removed_to_restart = old.state.waiting is not None and old.state.waiting.reason == states.RESTARTING_ALL_CONTAINERS
    if removed_to_restart or old.state.terminated is not None:
        return old
    if old.state.running is None or old.last_state.terminated is not None:
        return msgspec.structs.replace(old, state=fresh)
    lost = states.ended_unseen(states.STATUS_UNKNOWN, states.LOST_WHEN_DELETED, old.state.running.started_at)
    restarts = old.restart_count + (not given.terminating)
    return msgspec.structs.replace(old, state=fresh, last_state=lost, restart_count=restarts)


def _with_lost_attempts(given: ContainerStatusInput, status: ContainerStatus, *, again: bool) -> ContainerStatus:
    """Nobody here has seen the newest one: its logs say that it was. Like one that is lost sight of it counts as one
    restart more when it starts again."""
    lost = given.observed.lost_attempts.get(status.name)
    if lost is None:
        return status
    return msgspec.structs.replace(status, restart_count=max(status.restart_count, lost + again))


def _starts_no_more(given: ContainerStatusInput, container: Container, kind: ContainerKind) -> bool:
    """As the worker decides it: what comes after it has begun in the sandbox that serves now."""
    if kind is not ContainerKind.INIT or is_restartable_init(container):
        return False
    return given.has_started or container.name in given.passed


def _removed_to_restart(old: ContainerStatus) -> ContainerStatus:
    return msgspec.structs.replace(
        old,
        state=states.waiting(states.RESTARTING_ALL_CONTAINERS, states.REMOVED_TO_RESTART),
        last_state=states.ended_unseen(states.RESTARTING_ALL_CONTAINERS, states.REMOVED_TO_RESTART),
        restart_count=old.restart_count + 1,
    )


# --- in the runtime ------------------------------------------------------------------------------------------------


def _seen(
    given: ContainerStatusInput, seen: Sequence[RuntimeContainerStatus], old: ContainerStatus | None
) -> ContainerStatus:
    newest = seen[0]
    old = old or ContainerStatus(name=newest.name)
    another = old.state.terminated is not None and old.container_id != states.container_id(newest)
    status = ContainerStatus(
        name=newest.name,
        state=states.observed_state(newest),
        last_state=states.ended_state(seen[1]) if len(seen) > 1 else old.state if another else _end_before(newest, old),
        restart_count=_restart_count(seen, old.restart_count, another=another),
        image=newest.image,
        image_id=newest.image_id,
        container_id=states.container_id(newest),
        stop_signal=newest.stop_signal or None,
        user=ContainerUser(linux=newest.user) if newest.user is not None else None,
    )
    return _lost_sight_of(given, status, old) if newest.state is Observed.UNKNOWN else status


def _end_before(newest: RuntimeContainerStatus, old: ContainerStatus) -> ContainerState:
    """The end that was reported last, but not this container's own: while it waited, that stood there."""
    end = old.last_state.terminated
    is_own = end is not None and end.container_id == states.container_id(newest)
    return ContainerState() if is_own else old.last_state


def _attempts(seen: Sequence[RuntimeContainerStatus]) -> int:
    """One that was only made is none yet, beside the one before it: if it is removed before it has started, nothing
    tells that it ever was. Without that one, whose end it was is counted already."""
    newest, before = seen[0].attempt, (other.attempt for other in seen[1:])
    return newest - (seen[0].state is Observed.CREATED and newest - 1 in before)


def _restart_count(seen: Sequence[RuntimeContainerStatus], counted: int, *, another: bool) -> int:
    """Never falls: where attempts began anew (the logs are gone), another container that runs is one restart more."""
    newest = seen[0]
    return max(_attempts(seen), counted + (another and newest.state is Observed.RUNNING and newest.attempt < counted))


def _lost_sight_of(given: ContainerStatusInput, status: ContainerStatus, old: ContainerStatus) -> ContainerStatus:
    """Nobody can say what it does: it did run, so it counts as ended, and as one restart more."""
    if old.container_id == status.container_id and old.state.terminated is not None:
        return old
    if old.state.running is None or old.container_id != status.container_id:
        return status
    reason = states.RESTARTING_ALL_CONTAINERS if given.restarting_all else states.STATUS_UNKNOWN
    ended = states.ended_unseen(reason, states.LOST_WHEN_TERMINATED, old.state.running.started_at)
    return msgspec.structs.replace(status, state=ended, restart_count=old.restart_count + 1)


# --- what starts next ----------------------------------------------------------------------------------------------


def _is_initialized(
    given: ContainerStatusInput, container: Container, seen: Sequence[RuntimeContainerStatus], status: ContainerStatus
) -> bool:
    """An init container that is done, or long gone from a pod whose regular containers are there, or over: not started
    again.
    Gone to make room for the next start of all of them is not that: some regular ones only go later."""
    if seen:
        return seen[0].state is Observed.EXITED and seen[0].exit_code == 0
    return (
        status.state.waiting is not None
        and not (given.restarting_all and status.state.waiting.reason == states.RESTARTING_ALL_CONTAINERS)
        and not is_restartable_init(container)
        and (given.has_created or given.is_over)
    )


def has_any_regular_container_created(pod: Pod, observed: RuntimePodStatus) -> bool:
    """Some regular container was made and has not ended (pkg/kubelet/kuberuntime, HasAnyRegularContainerCreated)."""
    newest = (observed.newest(container.name) for container in pod.spec.containers)
    return any(c is not None and c.state in (Observed.CREATED, Observed.RUNNING) for c in newest)


def _with_reason(
    given: ContainerStatusInput, container: Container, seen: Sequence[RuntimeContainerStatus], status: ContainerStatus
) -> ContainerStatus:
    """Status with the reason of a container that should run and whose last start failed, or that is to be replaced:
    waiting, its end becomes the last state."""
    newest = seen[0] if seen else None
    reason = given.reasons.get(container.name)
    replaced = container.name in given.replaced and status.state.terminated is not None
    again = should_container_be_restarted(container, given.pod.spec, newest, deleting=given.terminating)
    if reason is not None and (again or replaced):
        state = states.waiting(reason.error, reason.message)
    elif replaced:
        state = states.waiting(states.CONTAINER_CREATING)
    else:
        return status
    last_state = status.state if status.state.terminated is not None else status.last_state
    return msgspec.structs.replace(status, state=state, last_state=last_state)


# --- probes --------------------------------------------------------------------------------------------------------


def _with_probes(
    given: ContainerStatusInput,
    kind: ContainerKind,
    container: Container,
    newest: RuntimeContainerStatus | None,
    status: ContainerStatus,
    old: ContainerStatus | None,
) -> ContainerStatus:
    """Started and ready (pkg/kubelet/prober/prober_manager.go, UpdatePodStatus).

    A regular init container is ready when it is done, and an ephemeral one never is.
    """
    probe_results = given.probe_results.get(newest.id, NO_PROBE_RESULTS) if newest is not None else NO_PROBE_RESULTS
    started = status.state.running is not None and _is_started(container, probe_results, status, old)
    if kind is ContainerKind.INIT and not is_restartable_init(container):
        ended = status.state.terminated
        return msgspec.structs.replace(status, started=started, ready=ended is not None and ended.exit_code == 0)
    if kind is ContainerKind.EPHEMERAL:
        return msgspec.structs.replace(status, started=None, ready=False)
    ready = started and (container.readiness_probe is None or probe_results.readiness is ProbeResult.SUCCESS)
    return msgspec.structs.replace(status, started=started, ready=ready)


def _is_started(
    container: Container, probe_results: ProbeResults, status: ContainerStatus, old: ContainerStatus | None
) -> bool:
    """Whether a running container has started. One that had started stays so while its probe has nothing new to say."""
    if container.startup_probe is not None and probe_results.startup is ProbeResult.UNKNOWN:
        return old is not None and old.container_id == status.container_id and bool(old.started)
    return probe_results.has_started(container)


def volume_mount_statuses(container: Container, images: Mapping[str, str]) -> tuple[VolumeMountStatus, ...]:
    """Volume mounts in the status (pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses).

    ``images``: those that the container sees as volumes, by the volume's name (KEP-5365); none before it is made.
    """
    return tuple(_status(mount, images.get(mount.name, "")) for mount in container.volume_mounts)


def _status(mount: VolumeMount, image: str) -> VolumeMountStatus:
    """Recursively read-only is possible wherever Rootlet runs, so IfPossible has become Enabled."""
    is_plain = mount.recursive_read_only in (None, "Disabled") or mount.mount_propagation not in (None, "None")
    recursive: RecursiveReadOnlyMode = "Disabled" if is_plain else "Enabled"
    return VolumeMountStatus(
        name=mount.name,
        mount_path=mount.mount_path,
        read_only=mount.read_only,
        recursive_read_only=recursive if mount.read_only else None,
        volume_status=VolumeStatus(image=ImageVolumeStatus(image_ref=image)) if image else None,
    )
