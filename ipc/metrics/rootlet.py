"""Metrics of our own, under `rootlet_`: processes, links, permits, and what the sync loop does."""

from __future__ import annotations

from typing import Final

from ipc.metrics.model import DEFAULT_BUCKETS, Metric, MetricType, Source, label
from ipc.metrics.reasons import SYNC_ERRORS

_COUNTER, _GAUGE, _HISTOGRAM = MetricType.COUNTER, MetricType.GAUGE, MetricType.HISTOGRAM

# --- the master ---------------------------------------------------------------------------------------------------

SYNC_LOOP_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SYNC_LOOP_DURATION: Final = Metric(
    name="rootlet_sync_loop_iteration_seconds",
    type=_HISTOGRAM,
    help="Time that the sync loop took over one event, and over what follows from it",
    source=Source.MASTER,
    buckets=SYNC_LOOP_BUCKETS,
    always=True,
)
SYNCS: Final = Metric(
    name="rootlet_syncs_total",
    type=_COUNTER,
    help="Syncs that have ended, by their error; empty without one",
    source=Source.MASTER,
    labels=(label("error", *SYNC_ERRORS),),
)
RESTS: Final = Metric(
    name="rootlet_periodic_syncs_passed_over_total",
    type=_COUNTER,
    help="Periodic syncs of pods that rest, which needed no worker",
    source=Source.MASTER,
    always=True,
)
EVENTS: Final = Metric(
    name="rootlet_events_total",
    type=_COUNTER,
    help="Events that were recorded, repeated ones too",
    source=Source.MASTER,
    labels=(label("type", "Normal", "Warning"),),
    always=True,
)
MANIFESTS_REFUSED: Final = Metric(
    name="rootlet_manifests_refused_total",
    type=_COUNTER,
    help="Documents of the sources that were refused",
    source=Source.MASTER,
    always=True,
)
ROLES: Final = ("pod-worker", "node-worker", "api-server", "dialer", "exec")
WORKER_STARTS: Final = Metric(
    name="rootlet_worker_starts_total",
    type=_COUNTER,
    help="Processes that the agent has started, by role; exec is the Podman service",
    source=Source.MASTER,
    labels=(label("role", *ROLES),),
)
WORKER_DEATHS: Final = Metric(
    name="rootlet_worker_deaths_total",
    type=_COUNTER,
    help="Processes of the agent that died without having been asked to leave",
    source=Source.MASTER,
    labels=(label("role", *ROLES),),
    always=True,
)

# --- workers ------------------------------------------------------------------------------------------------------

PERMIT_WAIT: Final = Metric(
    name="rootlet_mutation_permit_wait_seconds",
    type=_HISTOGRAM,
    help="Time that calls which change something wait for their permit; only those that wait",
    source=Source.POD_WORKER,
    buckets=DEFAULT_BUCKETS,
    always=True,
)
BREAKER_OPENED: Final = Metric(
    name="rootlet_breaker_opened_total",
    type=_COUNTER,
    help="Times that a process has stopped calling Podman because it did not answer",
    source=Source.WORKERS,
    per_process=True,
)
TASK_ERRORS: Final = Metric(
    name="rootlet_task_errors_total",
    type=_COUNTER,
    help="Unexpected errors that have ended a task",
    source=Source.WORKERS,
    per_process=True,
)
LINK_MESSAGES: Final = Metric(
    name="rootlet_link_messages_total",
    type=_COUNTER,
    help="Messages on the links of that process",
    source=Source.EVERY_PROCESS,
    labels=(label("direction", "sent", "received"),),
    per_process=True,
)
LINK_BYTES: Final = Metric(
    name="rootlet_link_bytes_total",
    type=_COUNTER,
    help="Bytes on the links of that process",
    source=Source.EVERY_PROCESS,
    labels=(label("direction", "sent", "received"),),
    per_process=True,
)
CPU_OF_ENDED: Final = Metric(
    name="rootlet_ended_processes_cpu_seconds_total",
    type=_COUNTER,
    help="CPU time of the incarnations of that worker that have ended",
    source=Source.ZYGOTE,
    per_process=True,
)

# --- read at the scrape -------------------------------------------------------------------------------------------


def _read(name: str, help: str, *label_names: str, type: MetricType = _GAUGE) -> Metric:
    return Metric(name=name, type=type, help=help, source=Source.SCRAPE, label_names=label_names)


WORKER_STATE: Final = _read("rootlet_worker_state", "1 for the state that a worker is in", "worker", "role", "state")
WORKER_INCARNATION: Final = _read("rootlet_worker_incarnation", "Number of a worker's incarnation", "worker")
WORKER_PODS: Final = _read("rootlet_worker_pods", "Pods that belong to a worker", "worker")
HEARTBEAT_AGE: Final = _read("rootlet_worker_heartbeat_age_seconds", "Age of a worker's heartbeat", "worker")
BREAKER_OPEN: Final = _read("rootlet_breaker_open", "1 while that process makes no calls of Podman", "worker")
SYNC_LOOP_AGE: Final = _read("rootlet_sync_loop_age_seconds", "Age of the end of the sync loop's last iteration")
PODMAN_UP: Final = _read("rootlet_podman_up", "1 while Podman answers")
SOURCES_READY: Final = _read("rootlet_sources_ready", "1 when every source was read completely once")
PODS_PHASE: Final = _read("rootlet_pods", "Pods by phase", "phase")
CONTAINER_RESTARTS: Final = _read("rootlet_container_restarts", "Sum of all containers' restart counts")
PROCESS_CPU: Final = _read(
    "rootlet_process_cpu_seconds_total",
    "CPU time of a process of the agent, those of earlier incarnations included",
    "worker",
    type=_COUNTER,
)
PROCESS_RSS: Final = _read(
    "rootlet_process_resident_memory_bytes", "Resident memory of a process, pages that it shares included", "worker"
)

METRICS: Final[tuple[Metric, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of this module."""
