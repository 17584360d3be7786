"""Metrics of our own, under `rootlet_`: processes, links, permits, and what the sync loop does."""

from __future__ import annotations

from typing import Final

from ipc.link.metrics.model import Metric, Source, counter, gauge, histogram, label
from ipc.link.metrics.reasons import SYNC_ERRORS

# --- the master ---------------------------------------------------------------------------------------------------

SYNC_LOOP_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
SYNC_LOOP_DURATION: Final = histogram(
    "rootlet_sync_loop_iteration_seconds",
    "Time that the sync loop took over one event, and over what follows from it",
    Source.MASTER,
    buckets=SYNC_LOOP_BUCKETS,
    always=True,
)
SYNCS: Final = counter(
    "rootlet_syncs_total",
    "Syncs that have ended, by their error; empty without one",
    Source.MASTER,
    label("error", *SYNC_ERRORS),
)
RESTS: Final = counter(
    "rootlet_periodic_syncs_passed_over_total",
    "Periodic syncs of pods that rest, which needed no worker",
    Source.MASTER,
    always=True,
)
EVENTS: Final = counter(
    "rootlet_events_total",
    "Events that were recorded, repeated ones too",
    Source.MASTER,
    label("type", "Normal", "Warning"),
    always=True,
)
MANIFESTS_REFUSED: Final = counter(
    "rootlet_manifests_refused_total", "Documents of the sources that were refused", Source.MASTER, always=True
)
ROLES: Final = ("pod-worker", "node-worker", "api-server", "dialer", "exec")
WORKER_STARTS: Final = counter(
    "rootlet_worker_starts_total",
    "Processes that the agent has started, by role; exec is the Podman service",
    Source.MASTER,
    label("role", *ROLES),
)
WORKER_DEATHS: Final = counter(
    "rootlet_worker_deaths_total",
    "Processes of the agent that died without having been asked to leave",
    Source.MASTER,
    label("role", *ROLES),
    always=True,
)

# --- workers ------------------------------------------------------------------------------------------------------

PERMIT_WAIT: Final = histogram(
    "rootlet_mutation_permit_wait_seconds",
    "Time that calls which change something wait for their permit; only those that wait",
    Source.POD_WORKER,
    always=True,
)
BREAKER_OPENED: Final = counter(
    "rootlet_breaker_opened_total",
    "Times that a process has stopped calling Podman because it did not answer",
    Source.WORKERS,
    per_process=True,
)
TASK_ERRORS: Final = counter(
    "rootlet_task_errors_total", "Unexpected errors that have ended a task", Source.WORKERS, per_process=True
)
LINK_MESSAGES: Final = counter(
    "rootlet_link_messages_total",
    "Messages on the links of that process",
    Source.EVERY_PROCESS,
    label("direction", "sent", "received"),
    per_process=True,
)
LINK_BYTES: Final = counter(
    "rootlet_link_bytes_total",
    "Bytes on the links of that process",
    Source.EVERY_PROCESS,
    label("direction", "sent", "received"),
    per_process=True,
)
CPU_OF_ENDED: Final = counter(
    "rootlet_ended_processes_cpu_seconds_total",
    "CPU time of the incarnations of that worker that have ended",
    Source.ZYGOTE,
    per_process=True,
)

# --- read at the scrape -------------------------------------------------------------------------------------------


WORKER_STATE: Final = gauge(
    "rootlet_worker_state", "1 for the state that a worker is in", Source.SCRAPE, "worker", "role", "state"
)
WORKER_INCARNATION: Final = gauge(
    "rootlet_worker_incarnation", "Number of a worker's incarnation", Source.SCRAPE, "worker"
)
WORKER_PODS: Final = gauge("rootlet_worker_pods", "Pods that belong to a worker", Source.SCRAPE, "worker")
HEARTBEAT_AGE: Final = gauge(
    "rootlet_worker_heartbeat_age_seconds", "Age of a worker's heartbeat", Source.SCRAPE, "worker"
)
BREAKER_OPEN: Final = gauge(
    "rootlet_breaker_open", "1 while that process makes no calls of Podman", Source.SCRAPE, "worker"
)
SYNC_LOOP_AGE: Final = gauge(
    "rootlet_sync_loop_age_seconds", "Age of the end of the sync loop's last iteration", Source.SCRAPE
)
PODMAN_UP: Final = gauge("rootlet_podman_up", "1 while Podman answers", Source.SCRAPE)
SOURCES_READY: Final = gauge("rootlet_sources_ready", "1 when every source was read completely once", Source.SCRAPE)
PODS_PHASE: Final = gauge("rootlet_pods", "Pods by phase", Source.SCRAPE, "phase")
PODS_HELD_UP: Final = gauge(
    "rootlet_pods_held_up", "Pods for which something that is due is not done, by reason", Source.SCRAPE, "reason"
)
CONTAINER_RESTARTS: Final = gauge("rootlet_container_restarts", "Sum of all containers' restart counts", Source.SCRAPE)
PROCESS_CPU: Final = counter(
    "rootlet_process_cpu_seconds_total",
    "CPU time of a process of the agent, those of earlier incarnations included",
    Source.SCRAPE,
    "worker",
)
PROCESS_RSS: Final = gauge(
    "rootlet_process_resident_memory_bytes",
    "Resident memory of a process, pages that it shares included",
    Source.SCRAPE,
    "worker",
)

METRICS: Final[tuple[Metric, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of this module."""
