"""Families of what is read at the scrape: the agent, its processes, and the pods that the API server knows."""

from __future__ import annotations

import platform
import resource
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ipc.k8s.api.pod_containers import every_status
from ipc.k8s.api.v1.status import ContainerStatus
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.kubecontainer.pod_status import SandboxState
from ipc.link.messages.api_server import AgentChanged, PodChanged
from ipc.link.metrics import kubelet, rootlet
from ipc.link.metrics.model import Metric
from ipc.link.metrics.table import LAYOUT
from ipc.link.shm.board import Board
from ipc.link.shm.breaker_state import BreakerState
from workers.api_server.metrics.exposition import Family, label_text
from workers.proc import usage

MASTER: Final = "master"
"""Value of the label ``worker`` for the master's own series."""
_RUNS: Final = ("Pending", "Running")
"""Phases of pods that count against the node."""
_EMPTY_DIR: Final = "kubernetes.io/empty-dir"
_PLUGINS: Final = {
    "empty_dir": _EMPTY_DIR,
    "host_path": "kubernetes.io/host-path",
    "image": "kubernetes.io/image",
    "persistent_volume_claim": "kubernetes.io/persistent-claim",
    "config_map": "kubernetes.io/configmap",
    "secret": "kubernetes.io/secret",
    "downward_api": "kubernetes.io/downward-api",
    "projected": "kubernetes.io/projected",
}
"""Attribute of `Volume` to the plugin's name (pkg/volume)."""


def worker_names(agent: AgentChanged, rows: Iterable[int], master_row: int) -> Mapping[int, str]:
    """Name of each row's process; a slot that has none any more is told by its number."""
    known = {worker.slot: worker.name for worker in agent.workers}
    return {row: MASTER if row == master_row else known.get(row, f"slot-{row}") for row in rows}


def _family(metric: Metric, samples: Iterable[tuple[tuple[str, ...], float]]) -> Family:
    return Family(metric, [("", label_text(metric.every_label, labels), value, 0.0) for labels, value in samples])


def _one(metric: Metric, value: float, *labels: str) -> Family:
    return _family(metric, [(labels, value)])


# --- pods ---------------------------------------------------------------------------------------------------------


def pod_families(pods: Sequence[PodChanged]) -> Iterator[Family]:
    """Numbers of pods and containers (pkg/kubelet/kubelet_pods.go, HandlePodCleanups). All pods are static: none comes
    from an API server."""
    wanted = [pod for pod in pods if not pod.deletion_timestamp]
    states: Counter[str] = Counter()
    for pod in pods:
        for container in every_status(pod.status):
            states[_state(container)] += 1
    phases = Counter(pod.status.phase or "Unknown" for pod in pods)
    volumes = Counter(_plugin(volume) for pod in pods for volume in pod.pod.spec.volumes)
    restarts = sum(container.restart_count for pod in pods for container in every_status(pod.status))
    yield _one(kubelet.DESIRED_PODS, len(wanted), "true")
    yield _one(kubelet.ACTIVE_PODS, sum(pod.status.phase in _RUNS for pod in wanted), "true")
    running = sum(pod.sandbox is not None and pod.sandbox.state is SandboxState.READY for pod in pods)
    yield _one(kubelet.RUNNING_PODS, running)
    resizes = Counter((condition.type, condition.reason.lower()) for pod in pods for condition in pod.status.conditions)
    in_progress = sum(number for (type, _), number in resizes.items() if type == "PodResizeInProgress")
    yield _one(kubelet.IN_PROGRESS_RESIZES, in_progress)
    pending = [((reason,), number) for (type, reason), number in sorted(resizes.items()) if type == "PodResizePending"]
    yield _family(kubelet.PENDING_RESIZES, pending)
    yield _family(kubelet.RUNNING_CONTAINERS, [((state,), number) for state, number in sorted(states.items())])
    yield _one(kubelet.EPHEMERAL_CONTAINERS, sum(len(pod.pod.spec.ephemeral_containers) for pod in pods))
    desired = [((plugin, "desired_state_of_world"), number) for plugin, number in sorted(volumes.items())]
    yield _family(kubelet.VOLUMES, desired)
    yield _family(rootlet.PODS_PHASE, [((phase,), number) for phase, number in sorted(phases.items())])
    held_up = Counter(pod.waits_for for pod in pods if pod.waits_for)
    yield _family(rootlet.PODS_HELD_UP, [((reason,), number) for reason, number in sorted(held_up.items())])
    yield _one(rootlet.CONTAINER_RESTARTS, restarts)


def _state(container: ContainerStatus) -> str:
    """The runtime's word; a container that waits for its start may not exist."""
    if container.state.running is not None:
        return "running"
    return "exited" if container.state.terminated is not None else "created"


def _plugin(volume: Volume) -> str:
    return next((name for source, name in _PLUGINS.items() if getattr(volume, source) is not None), _EMPTY_DIR)


def health_family(problems: Mapping[str, str]) -> Family:
    """Results of health checks, with their problems."""
    return _family(kubelet.HEALTH_CHECK, [((name, "healthz"), float(not why)) for name, why in problems.items()])


def inflight_family(requests: Mapping[tuple[str, str, str, str], int]) -> Family:
    """Requests under way by long_running, path, method and server_type."""
    return _family(
        kubelet.HTTP_INFLIGHT,
        [((is_long, method, path, server), count) for (is_long, path, method, server), count in requests.items()],
    )


# --- processes ----------------------------------------------------------------------------------------------------


def agent_families(agent: AgentChanged) -> Iterator[Family]:
    """The agent as a whole."""
    version = agent.version.split(".")
    labels = {
        **dict.fromkeys(kubelet.BUILD_INFO.label_names, ""),
        "git_version": f"v{agent.version}",
        "compiler": platform.python_implementation(),
        "go_version": f"python{platform.python_version()}",
        "major": version[0],
        "minor": version[1] if len(version) > 1 else "",
        "platform": f"{sys.platform}/{platform.machine()}",
    }
    yield _family(kubelet.BUILD_INFO, [(tuple(labels.values()), 1.0)])
    yield _one(kubelet.NODE_NAME, 1.0, agent.node_name)
    yield _one(rootlet.PODMAN_UP, float(agent.runtime_healthy))
    yield _one(rootlet.SOURCES_READY, float(agent.sources_ready))


def start_time_family(agent: AgentChanged) -> Family:
    """On every path but statistics'."""
    return _one(kubelet.PROCESS_START_TIME, agent.started_at)


def worker_families(agent: AgentChanged, board: Board, now_mono: float) -> Iterator[Family]:
    """The agent's processes by what the master and the board say of them."""
    workers = agent.workers
    yield _family(rootlet.WORKER_STATE, [((w.name, w.role, w.state), 1.0) for w in workers])
    yield _family(rootlet.WORKER_INCARNATION, [((w.name,), w.incarnation) for w in workers])
    yield _family(rootlet.WORKER_PODS, [((w.name,), w.pods) for w in workers if w.role == "pod-worker"])
    ages, open_breakers = [], []
    for worker in workers:
        row = board.read_worker(worker.slot) if 0 <= worker.slot < board.worker_slots else None
        if row is None or (row.pid, row.incarnation) != (worker.pid, worker.incarnation):
            continue
        if row.heartbeat:
            ages.append(((worker.name,), max(0.0, now_mono - row.heartbeat)))
        if row.breaker is not BreakerState.NONE:
            open_breakers.append(((worker.name,), float(row.breaker is BreakerState.OPEN)))
    yield _family(rootlet.HEARTBEAT_AGE, ages)
    yield _family(rootlet.BREAKER_OPEN, open_breakers)
    yield _one(rootlet.SYNC_LOOP_AGE, max(0.0, now_mono - board.last_iteration))


def process_families(agent: AgentChanged, rows: Mapping[int, Sequence[float]]) -> Iterator[Family]:
    """CPU time and memory of the agent's processes. Reads /proc: not for the loop."""
    ended = LAYOUT.offset(rootlet.CPU_OF_ENDED)
    cpu, rss = [], []
    for worker in agent.workers:
        used = usage.of(worker.pid) if worker.pid > 0 else None
        before = rows[worker.slot][ended] if worker.slot in rows else 0.0
        cpu.append(((worker.name,), before + (used.cpu_s if used else 0.0)))
        if used is not None:
            rss.append(((worker.name,), float(used.rss_bytes)))
    master = usage.of(agent.pid)
    if master is not None:
        cpu.append(((MASTER,), master.cpu_s))
        rss.append(((MASTER,), float(master.rss_bytes)))
        yield _one(kubelet.PROCESS_CPU, master.cpu_s)
        yield _one(kubelet.PROCESS_RSS, master.rss_bytes)
        yield _one(kubelet.PROCESS_VIRTUAL, master.virtual_bytes)
        yield _one(kubelet.PROCESS_OPEN_FDS, usage.open_fds(agent.pid))
        yield _one(kubelet.PROCESS_MAX_FDS, resource.prlimit(agent.pid, resource.RLIMIT_NOFILE)[0])
    yield _family(rootlet.PROCESS_CPU, cpu)
    yield _family(rootlet.PROCESS_RSS, rss)
