"""The phase of a pod out of its container statuses (pkg/kubelet/kubelet_pods.go, getPhase)."""

from __future__ import annotations

from collections.abc import Iterable

from ipc.api import Container, ContainerStatus, PodSpec
from ipc.restart_policy import container_should_restart, is_restartable_init


def get_phase(
    spec: PodSpec, statuses: Iterable[ContainerStatus], *, pod_is_terminal: bool, pod_has_initialized: bool
) -> str:
    """``pod_is_terminal``: nothing will be started any more, whatever the restart policy says."""
    by_name = {status.name: status for status in statuses}
    inits = [c for c in spec.init_containers if not is_restartable_init(c)]
    sidecars = [c for c in spec.init_containers if is_restartable_init(c)]
    init_marks = [_init_mark(c, spec, by_name.get(c.name)) for c in inits]
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
    if stopped and not running and not unknown:
        return _phase_when_all_stopped(spec, by_name, pod_is_terminal)
    return "Pending"


def _init_mark(container: Container, spec: PodSpec, status: ContainerStatus | None) -> str:
    """done, pending or failed (for good)."""
    ended = None if status is None else status.state.terminated
    if status is not None and status.state.waiting is not None:
        ended = status.last_state.terminated
    if ended is None:
        return "pending"
    if ended.exit_code == 0 or container_should_restart(container, spec, ended.exit_code):
        return "done"
    return "failed"


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


def _phase_when_all_stopped(spec: PodSpec, by_name: dict[str, ContainerStatus], pod_is_terminal: bool) -> str:
    ends = [(c, by_name[c.name].state.terminated or by_name[c.name].last_state.terminated) for c in spec.containers]
    codes = [(c, end.exit_code) for c, end in ends if end is not None]
    if not pod_is_terminal and any(
        by_name[c.name].state.waiting is not None or container_should_restart(c, spec, code) for c, code in codes
    ):
        return "Running"
    return "Succeeded" if all(code == 0 for _, code in codes) else "Failed"
