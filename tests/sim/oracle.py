"""State of a quiet host: every pod as its manifest wants it, told as it is. Says what is wrong, for people."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.hashing import hash_in, sandbox_hash
from ipc.k8s.kubecontainer.probe_results import probes_of
from ipc.k8s.kubecontainer.restart_policy import (
    RESTART_ALL_CONTAINERS,
    container_should_restart,
    find_matching_restart_rule,
    is_restartable_init,
)
from ipc.link.messages.api_server import PodChanged
from tests.fakes.podman import FakeContainer
from tests.sim.pods import ABSENT
from tests.sim.probes import FLAKY, NEVER, health_of
from tests.sim.resizes import wrong_limits
from tests.sim.runtime import SimPodman, uid_of
from tests.sim.watch import TERMINAL, attempt_of, every_status, name_of
from workers.kubecontainer import labels

SLACK_S: Final = 3.0
"""How late a container may be after its back-off has ended."""
MAX_BACKOFF_S: Final = 40.0
"""The longest there is here, in seconds."""
READY_WITHIN_S: Final = 60.0
"""How long the slowest probes take to call a well container ready, in seconds."""


def complaints(pod: Pod, podman: SimPodman, told: PodChanged | None, now_wall: float, *, edited: bool) -> Iterator[str]:
    """Why this pod is not yet as it should be; nothing when it is. What has ended may have ended by an earlier
    manifest, if it was ``edited``."""
    if told is None:
        yield "nothing is told of it"
        return
    alive = {name_of(c): c for c in podman.of_pod(pod.metadata.uid) if c.state == "running"}
    status = told.status
    yield from _told_wrongly(told, alive)
    if status.phase in TERMINAL:
        sandboxes = [c.name for c in podman.containers.values() if c.is_infra and uid_of(c) == pod.metadata.uid]
        running = [name for name in sandboxes if podman.container(name).state == "running"]
        if alive or running:
            yield f"it is {status.phase} and runs {sorted(alive)} {running}"
        if not edited:
            yield from _wrong_end(pod, status.phase, status.reason)
        return
    yield from (f"{c.name} runs outside of its pod's slice" for c in alive.values() if _is_outside(c, podman))
    if edited and _waits_for_images(pod, podman):
        return
    wanted = {c.name: c for c in (*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers)}
    for name, container in alive.items():
        if name not in wanted:
            yield f"{name} runs and is not wanted"
        elif name != "debug" and container.labels[labels.CONTAINER_HASH] != hash_in(pod.spec, wanted[name]):
            yield f"{name} runs as it was before an edit"
    yield from wrong_limits(pod, told, alive)
    yield from _missing(pod, podman, told, alive, now_wall)
    long_alive = {name for name, container in alive.items() if now_wall - container.started_at > READY_WITHIN_S}
    yield from _readiness(pod, told, long_alive)


def _waits_for_images(pod: Pod, podman: SimPodman) -> bool:
    """Whether the pod of an earlier manifest goes on, as an image of the new one cannot be pulled."""
    stated = {c.name: c for c in (*pod.spec.init_containers, *pod.spec.containers)}
    if not any(container.image == ABSENT for container in stated.values()):
        return False
    made = [c for c in podman.of_pod(pod.metadata.uid) if name_of(c) in stated]
    sandboxes = [each for each in podman.pods.values() if each.labels.get(labels.POD_UID) == pod.metadata.uid]
    return any(c.labels[labels.CONTAINER_HASH] != hash_in(pod.spec, stated[name_of(c)]) for c in made) or any(
        each.labels[labels.SANDBOX_HASH] != sandbox_hash(pod) for each in sandboxes
    )


def _is_outside(container: FakeContainer, podman: SimPodman) -> bool:
    return bool(container.cgroup_parent) and container.cgroup_parent not in podman.slices


def _readiness(pod: Pod, told: PodChanged, long_alive: Set[str]) -> Iterator[str]:
    """Findings of a running container's probes in quiet times are told."""
    statuses = {c.name: c for c in every_status(told)}
    for container in (*pod.spec.containers, *filter(is_restartable_init, pod.spec.init_containers)):
        status = statuses.get(container.name)
        if status is None or status.state.running is None:
            continue
        finds = {health_of(probe) for probe in probes_of(container).values()}
        is_well = FLAKY not in finds and NEVER not in finds
        if is_well and not status.ready and container.name in long_alive:
            yield f"{container.name} is well and not ready"
        readiness = container.readiness_probe
        if readiness is not None and health_of(readiness) == NEVER and status.ready:
            yield f"{container.name} is never ready and is said to be"


def _told_wrongly(told: PodChanged, alive: dict[str, FakeContainer]) -> Iterator[str]:
    for status in every_status(told):
        running = status.state.running is not None
        truth = alive.get(status.name)
        if running and (truth is None or not status.container_id.endswith(truth.id)):
            yield f"{status.name} is said to run and does not"
        if not running and truth is not None:
            yield f"{status.name} runs and is not said to"


def _wrong_end(pod: Pod, phase: str, reason: str) -> Iterator[str]:
    """A pod that restarts everything always does not come to its end by itself."""
    if reason in ("DeadlineExceeded", "NodePorts", "OutOfcpu", "Evicted"):
        return
    own = any(c.restart_policy is not None for c in (*pod.spec.containers, *pod.spec.init_containers))
    if pod.spec.restart_policy == "Always" and not own:
        yield f"it is {phase} ({reason}) and restarts always"


def _missing(
    pod: Pod, podman: SimPodman, told: PodChanged, alive: dict[str, FakeContainer], now_wall: float
) -> Iterator[str]:
    """Containers that should run and have no excuse."""
    if _is_lost(pod, podman):
        return
    ready = {c.pod_id for c in podman.containers.values() if c.is_infra and c.state == "running"}
    here = [c for c in podman.of_pod(pod.metadata.uid) if c.pod_id in ready]
    regular = {c.name for c in pod.spec.containers}
    initialized = any(name_of(c) in regular for c in here)
    begun = [n for n, container in enumerate(pod.spec.init_containers) if _newest(here, container.name)]
    remembered = _remembered(pod, told)
    for number, container in enumerate(pod.spec.init_containers):
        sidecar = is_restartable_init(container)
        if initialized and not sidecar:
            continue
        newest = _newest(here, container.name)
        if newest is None and not sidecar and begun and number < begun[-1]:
            continue  # written before one that has begun: as if it had run and been removed
        if newest is None and container.name in remembered:
            continue
        if container.name in alive:
            if sidecar and (initialized or not _never_starts(container)):
                continue
            return
        if not sidecar and newest is not None and _is_over(newest, container, pod):
            continue
        if (why := _no_excuse(container, pod, podman, told, now_wall)) is None:
            if initialized:
                continue
            return
        yield why
        return
    for container in pod.spec.containers:
        if container.name in alive:
            continue
        if why := _no_excuse(container, pod, podman, told, now_wall):
            yield why


def _remembered(pod: Pod, told: PodChanged) -> Set[str]:
    """Init containers that need not be there to be done: a pod that restarts nothing goes on where it was."""
    if pod.spec.restart_policy != "Never":
        return frozenset()
    ends = {c.name: c.state.terminated for c in told.status.init_container_statuses}
    sidecars = {c.name for c in pod.spec.init_containers if is_restartable_init(c)}
    return {name for name, end in ends.items() if end is not None and end.exit_code == 0} - sidecars


def _never_starts(sidecar: Container) -> bool:
    """Whether it runs and holds up what is behind it, until its startup probe has failed often enough."""
    return sidecar.startup_probe is not None and health_of(sidecar.startup_probe) == NEVER


def _is_over(newest: FakeContainer, container: Container, pod: Pod) -> bool:
    """An init container that was redefined before initialization was over runs anew."""
    is_same = newest.labels[labels.CONTAINER_HASH] == hash_in(pod.spec, container)
    return is_same and newest.state == "exited" and newest.exit_code == 0


def _is_lost(pod: Pod, podman: SimPodman) -> bool:
    """Whether it has lost the sandbox in which it had begun, and restarts nothing or is done: it gets no other one
    (kuberuntime_manager.go, computePodActions)."""
    made = podman.of_pod(pod.metadata.uid)
    infra = [c for c in podman.containers.values() if c.is_infra and uid_of(c) == pod.metadata.uid]
    if not made or any(c.state == "running" for c in infra):
        return False
    ends = [_newest(made, container.name) for container in pod.spec.containers]
    done = all(end is not None and end.state == "exited" and end.exit_code == 0 for end in ends)
    policies = {container.restart_policy or pod.spec.restart_policy for container in pod.spec.containers}
    return pod.spec.restart_policy == "Never" or (done and policies == {"OnFailure"})


def _asks_for_all(container: Container, ended: FakeContainer) -> bool:
    """Whether its pod waits for the restart of all containers; what it had to wait for itself is on no label then."""
    rule = find_matching_restart_rule(container, ended.exit_code)
    return rule is not None and rule.action == RESTART_ALL_CONTAINERS


def _no_excuse(container: Container, pod: Pod, podman: SimPodman, told: PodChanged, now_wall: float) -> str | None:
    """None when it rightly does not run now."""
    newest = _newest(podman.of_pod(pod.metadata.uid), container.name)
    waiting = {c.name: c.state.waiting.reason for c in every_status(told) if c.state.waiting is not None}
    if container.image == ABSENT:
        return None
    if newest is not None and newest.state == "exited":
        backoff_s = float(newest.labels.get(labels.BACKOFF_S, "0"))
        if _asks_for_all(container, newest):
            backoff_s = MAX_BACKOFF_S
        if now_wall < newest.finished_at + backoff_s + SLACK_S:
            return None
        is_same = newest.labels[labels.CONTAINER_HASH] == hash_in(pod.spec, container)
        restarts = is_restartable_init(container) or container_should_restart(container, pod.spec, newest.exit_code)
        if is_same and not restarts:
            return None
    if newest is not None and newest.state == "created" and _has_failed_for_good(container, pod, newest, told):
        return None
    return f"{container.name} does not run: {newest.state if newest else 'never made'}, {waiting.get(container.name)}"


def _has_failed_for_good(container: Container, pod: Pod, made: FakeContainer, told: PodChanged) -> bool:
    """Whether its start failed, which is told as an end, and its policy does not try again."""
    ends = [c.state.terminated for c in every_status(told) if c.container_id.endswith(made.id)]
    return any(end and not container_should_restart(container, pod.spec, end.exit_code) for end in ends)


def _newest(containers: list[FakeContainer], name: str) -> FakeContainer | None:
    return max((c for c in containers if name_of(c) == name), key=attempt_of, default=None)
