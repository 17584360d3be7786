"""The phase of a pod out of its container statuses (pkg/kubelet/kubelet_pods.go, getPhase)."""

from __future__ import annotations

from collections.abc import Container, Iterable

from ipc.k8s.api.v1.container import Container as ApiContainer
from ipc.k8s.api.v1.pod import PodSpec
from ipc.k8s.api.v1.status import ContainerStateTerminated, ContainerStatus
from ipc.k8s.kubecontainer.restart_policy import container_should_restart, is_restartable_init
from supervisor.status.container_states import RESTARTING_ALL_CONTAINERS


def get_phase(
    spec: PodSpec,
    statuses: Iterable[ContainerStatus],
    *,
    pod_is_terminal: bool,
    pod_has_initialized: bool,
    replaced: Container[str] = frozenset(),
    restarting_all: bool = False,
) -> str:
    """``pod_is_terminal``: nothing will be started any more, whatever the restart policy says (upstream: not so for
    static pods, whose mirror would go for good).

    ``replaced``: names of containers that will be started again, whatever it says (an edited manifest; upstream has
    no such thing).
    ``restarting_all``: a rule restarts all containers. One that was killed for it and is not removed yet starts again,
    whatever it says (upstream decides when both are done).
    """
    by_name = {status.name: status for status in statuses}
    inits = [c for c in spec.init_containers if not is_restartable_init(c)]
    sidecars = [c for c in spec.init_containers if is_restartable_init(c)]
    init_marks = [_init_mark(c, spec, by_name.get(c.name), restarting_all) for c in inits]
    side_marks = [_sidecar_marks(by_name.get(c.name)) for c in sidecars]
    main_marks = [_main_mark(by_name.get(c.name)) for c in spec.containers]

    if "failed" in init_marks:
        return "Failed"
    waiting = main_marks.count("waiting") + sum("waiting" in marks for marks in side_marks)
    running = main_marks.count("running") + sum("running" in marks for marks in side_marks)
    unknown = main_marks.count("unknown") + sum("unknown" in marks for marks in side_marks)
    stopped = main_marks.count("stopped")
    sidecar_pending = any("pending" in marks for marks in side_marks)
    if "pending" in init_marks or (sidecar_pending and not pod_has_initialized) or waiting:
        return "Pending"
    if running and not unknown:
        return "Running"
    if not stopped or running or unknown:
        return "Pending"
    again = (c.name in replaced or _restarts(c, spec, by_name[c.name]) for c in spec.containers)
    if not pod_is_terminal and (restarting_all or any(again)):
        return "Running"
    ends = [by_name[c.name].state.terminated for c in spec.containers]
    return "Succeeded" if all(end is not None and end.exit_code == 0 for end in ends) else "Failed"


def _init_mark(container: ApiContainer, spec: PodSpec, status: ContainerStatus | None, restarting_all: bool) -> str:
    """done, pending or failed (for good)."""
    ended = None if status is None else _end(status)
    if status is None or ended is None:
        return "pending"
    again = restarting_all or _restarts(container, spec, status)
    return "done" if ended.exit_code == 0 or again else "failed"


def _sidecar_marks(status: ContainerStatus | None) -> frozenset[str]:
    """A sidecar that ended counts for nothing."""
    if status is None:
        return frozenset({"unknown"})
    if status.state.running is not None:
        return frozenset({"running"} if status.started else {"running", "pending"})
    if status.state.terminated is not None:
        return frozenset()
    if status.state.waiting is not None:
        return frozenset() if status.last_state.terminated is not None else frozenset({"pending", "waiting"})
    return frozenset({"pending", "unknown"})


def _main_mark(status: ContainerStatus | None) -> str:
    if status is None:
        return "unknown"
    if status.state.running is not None:
        return "running"
    if status.state.terminated is not None:
        return "stopped"
    if status.state.waiting is not None:
        return "stopped" if status.last_state.terminated is not None else "waiting"
    return "unknown"


def _end(status: ContainerStatus) -> ContainerStateTerminated | None:
    """How it ended, if it does not run: one that waits with an end behind it counts as stopped."""
    return status.last_state.terminated if status.state.waiting is not None else status.state.terminated


def _restarts(container: ApiContainer, spec: PodSpec, status: ContainerStatus) -> bool:
    """A container that ended starts again."""
    end = _end(status)
    if end is None:
        return False
    return end.reason == RESTARTING_ALL_CONTAINERS or container_should_restart(container, spec, end.exit_code)
