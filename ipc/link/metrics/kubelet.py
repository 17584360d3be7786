"""Metrics with the kubelet's own names, wherever the meaning is the same (pkg/kubelet/metrics/metrics.go, ...)."""

from __future__ import annotations

from functools import partial
from typing import Final

from ipc.k8s.eviction.signals import Signal
from ipc.k8s.kubecontainer.probe_results import ProbeType
from ipc.link.metrics.model import Endpoint, Labels, Metric, Source, Stability, counter, gauge, histogram, label
from ipc.link.metrics.reasons import OTHER, START_ERRORS

_STARTUP_BUCKETS: Final = (
    *(0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0),
    *(600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0),
)
"""pkg/kubelet/metrics/metrics.go, podStartupDurationBuckets."""
_PULL_BUCKETS: Final = (
    *(1.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0),
    *(2700.0, 3600.0),
)
_counter = partial(counter, stability=Stability.ALPHA)
_gauge = partial(gauge, stability=Stability.ALPHA)
_histogram = partial(histogram, stability=Stability.ALPHA)

CONTAINER_TYPES: Final = ("container", "init_container", "ephemeral_container")
"""Values of ``container_type`` (pkg/kubelet/metrics/metrics.go)."""
_CONTAINER_TYPE: Final = label("container_type", *CONTAINER_TYPES)

# --- the master ---------------------------------------------------------------------------------------------------

POD_WORKER_OPERATIONS: Final = ("create", "update", "sync", "kill", "terminated")
POD_WORKER_DURATION: Final = _histogram(
    "kubelet_pod_worker_duration_seconds",
    "Time from the request of a pod's sync to its end, by what it was for; kill is a termination",
    Source.MASTER,
    label("operation_type", *POD_WORKER_OPERATIONS),
)
POD_WORKER_START_DURATION: Final = _histogram(
    "kubelet_pod_worker_start_duration_seconds",
    "Time from seeing a pod for the first time to its first sync",
    Source.MASTER,
    always=True,
)
POD_START_DURATION: Final = _histogram(
    "kubelet_pod_start_duration_seconds",
    "Time from seeing a pod for the first time to its phase Running",
    Source.MASTER,
    buckets=_STARTUP_BUCKETS,
    always=True,
)
POD_START_TOTAL_DURATION: Final = _histogram(
    "kubelet_pod_start_total_duration_seconds",
    "Time from seeing a pod for the first time to all its containers having run, pulls and init containers too",
    Source.MASTER,
    buckets=_STARTUP_BUCKETS,
    always=True,
)
POD_START_SLI_DURATION: Final = _histogram(
    "kubelet_pod_start_sli_duration_seconds",
    "The same without the time in which its images were pulled and its init containers ran, of stateless pods",
    Source.MASTER,
    buckets=_STARTUP_BUCKETS,
    always=True,
)
CONTAINERS_PER_POD: Final = _histogram(
    "kubelet_containers_per_pod_count",
    "Number of containers of each pod that was admitted",
    Source.MASTER,
    buckets=(1.0, 2.0, 4.0, 8.0, 16.0),
    always=True,
)
ADMISSION_REASONS: Final = (
    *("AppArmor", "NodeAffinity", "NodePorts", "OutOfcpu", "OutOfephemeral-storage", "OutOfmemory", "OutOfpods"),
    *("PodOSSelectorNodeLabelDoesNotMatch", "SysctlForbidden", "UnexpectedAdmissionError", "Other"),
)
ADMISSION_REJECTIONS: Final = _counter(
    "kubelet_admission_rejections_total",
    "Pods that were not admitted",
    Source.MASTER,
    label("reason", *ADMISSION_REASONS),
)
REQUESTED_RESIZES: Final = _counter(
    "kubelet_container_requested_resizes_total",
    "Resizes of containers that edits have asked for, each amount by itself",
    Source.MASTER,
    label("resource", "cpu", "memory"),
    label("requirement", "limits", "requests"),
    label("operation", "add", "remove", "increase", "decrease"),
)
DEFERRED_ACCEPTED_RESIZES: Final = _counter(
    "kubelet_pod_deferred_accepted_resizes_total",
    "Resizes that were deferred and could be done later; what made room for them is not told apart",
    Source.MASTER,
    label("retry_trigger", "pod_updated", "periodic_retry"),
)
INFEASIBLE_RESIZES: Final = _counter(
    "kubelet_pod_infeasible_resizes_total",
    "Resizes that can never be done",
    Source.MASTER,
    label("reason_detail", "insufficient_node_allocatable", "swap_limitation"),
)
PREEMPTION_SIGNALS: Final = ("cpu", "ephemeral-storage", "memory", "pods", "other")
PREEMPTIONS: Final = _counter(
    "kubelet_preemptions",
    "Pods that gave way to a critical one, by the first resource that it lacked",
    Source.MASTER,
    label("preemption_signal", *PREEMPTION_SIGNALS),
)
ORPHANED_RUNTIME_PODS: Final = _counter(
    "kubelet_orphaned_runtime_pods_total",
    "Pods that were found running and that no source states",
    Source.MASTER,
    always=True,
)
RESTARTED_PODS: Final = _counter(
    "kubelet_restarted_pods_total",
    "Pods that were stated anew under the same UID while their predecessor went down",
    Source.MASTER,
    label("static", "true"),
    always=True,
)
KILLED: Final = 137
"""Exit code of a container that was killed by SIGKILL."""
ENDS: Final = (
    ("0", "Completed"),
    *((str(code), "Error") for code in range(1, 256)),
    (str(KILLED), "OOMKilled"),
    (str(KILLED), "ContainerStatusUnknown"),
    ("128", "StartError"),
    (OTHER, OTHER),
)
TERMINATED_CONTAINERS: Final = _counter(
    "kubelet_terminated_containers_total",
    "Containers that have ended since the agent started",
    Source.MASTER,
    _CONTAINER_TYPE,
    Labels(("exit_code", "reason"), ENDS),
)
PODS_QUEUE: Final = "pods"
WORKQUEUE_ADDS: Final = counter(
    "workqueue_adds_total",
    "Syncs that were put into the queue of syncs that are due later",
    Source.MASTER,
    label("name", PODS_QUEUE),
    stability=Stability.BETA,
    always=True,
)
WORKQUEUE_DEPTH: Final = gauge(
    "workqueue_depth",
    "Syncs in that queue",
    Source.MASTER,
    label("name", PODS_QUEUE),
    stability=Stability.BETA,
    always=True,
)

SHUTDOWN_START: Final = _gauge(
    "kubelet_graceful_shutdown_start_time_seconds",
    "Time at which the newest shutdown or drain of the node began, in seconds since the epoch",
    Source.MASTER,
    always=True,
)
SHUTDOWN_END: Final = _gauge(
    "kubelet_graceful_shutdown_end_time_seconds",
    "Time at which its last pod had ended, in seconds since the epoch; 0 before",
    Source.MASTER,
    always=True,
)

# --- pod workers --------------------------------------------------------------------------------------------------

STARTED_PODS: Final = _counter(
    "kubelet_started_pods_total", "Sandboxes that were to be made", Source.POD_WORKER, always=True
)
STARTED_PODS_ERRORS: Final = _counter(
    "kubelet_started_pods_errors_total", "Sandboxes that could not be made", Source.POD_WORKER, always=True
)
STARTED_USER_NAMESPACED_PODS: Final = _counter(
    "kubelet_started_user_namespaced_pods_total",
    "Sandboxes with a user namespace of their own that were to be made",
    Source.POD_WORKER,
    always=True,
)
STARTED_USER_NAMESPACED_PODS_ERRORS: Final = _counter(
    "kubelet_started_user_namespaced_pods_errors_total",
    "Sandboxes with a user namespace of their own that could not be made",
    Source.POD_WORKER,
    always=True,
)
RUN_POD_SANDBOX_DURATION: Final = _histogram(
    "kubelet_run_podsandbox_duration_seconds",
    "Time to make a sandbox and start it",
    Source.POD_WORKER,
    label("runtime_handler", ""),
)
RUN_POD_SANDBOX_ERRORS: Final = _counter(
    "kubelet_run_podsandbox_errors_total",
    "Sandboxes that could not be made or started",
    Source.POD_WORKER,
    label("runtime_handler", ""),
)
STARTED_CONTAINERS: Final = _counter(
    "kubelet_started_containers_total",
    "Containers that were to be made and started",
    Source.POD_WORKER,
    _CONTAINER_TYPE,
)
STARTED_CONTAINERS_ERRORS: Final = _counter(
    "kubelet_started_containers_errors_total",
    "Containers that could not be started",
    Source.POD_WORKER,
    _CONTAINER_TYPE,
    label("code", *START_ERRORS),
)
_FLAG: Final = ("false", "true")
ENSURE_IMAGE_REQUESTS: Final = _counter(
    "kubelet_image_manager_ensure_image_requests_total",
    "Images that a container needed",
    Source.POD_WORKER,
    label("present_locally", *_FLAG),
    label("pull_policy", "always", "ifnotpresent", "never"),
    label("pull_required", *_FLAG),
)
EVICTION_SIGNALS: Final = ("emptydirfs.limit", "ephemeralcontainerfs.limit", "ephemeralpodfs.limit")
"""Signals of pods that take more than their own limits."""
_NODE_SIGNALS: Final = tuple(signal.value for signal in Signal)
EVICTIONS: Final = _counter(
    "kubelet_evictions",
    "Pods that were evicted because they took more than their limit, or because the node ran short",
    Source.MASTER_AND_POD_WORKERS,
    label("eviction_signal", *EVICTION_SIGNALS, *_NODE_SIGNALS),
)
EVICTION_STATS_AGE: Final = _histogram(
    "kubelet_eviction_stats_age_seconds",
    "Age of the node's figures when a pod was evicted by them",
    Source.MASTER,
    label("eviction_signal", *_NODE_SIGNALS),
)
HTTP_FALLBACKS: Final = _counter(
    "kubelet_lifecycle_handler_http_fallbacks_total",
    "Hooks with HTTPS that succeeded with HTTP",
    Source.POD_WORKER,
    always=True,
)
SLEEPS_CUT_SHORT: Final = _counter(
    "kubelet_sleep_action_terminated_early_total",
    "Sleeps of hooks that were ended before their time",
    Source.POD_WORKER,
    always=True,
)
PROBE_RESULTS: Final = ("successful", "failed", "unknown")
PROBE_TYPES: Final = {
    ProbeType.LIVENESS: "Liveness",
    ProbeType.READINESS: "Readiness",
    ProbeType.STARTUP: "Startup",
}
"""Values of ``probe_type`` (pkg/kubelet/prober/prober_manager.go, probeType.String)."""
PROBES: Final = counter(
    "prober_probe_total",
    "Probes of a container by their result",
    Source.SCRAPE,
    "container",
    "namespace",
    "pod",
    "pod_uid",
    "probe_type",
    "result",
    stability=Stability.BETA,
    endpoint=Endpoint.PROBES,
)
PROBE_DURATION: Final = _histogram(
    "prober_probe_duration_seconds",
    "Time that a probe of a container took",
    Source.SCRAPE,
    "container",
    "namespace",
    "pod",
    "probe_type",
    endpoint=Endpoint.PROBES,
)

# --- the node worker ----------------------------------------------------------------------------------------------

PLEG_RELIST_DURATION: Final = _histogram(
    "kubelet_pleg_relist_duration_seconds", "Time that a relist took", Source.NODE_WORKER, always=True
)
PLEG_RELIST_INTERVAL: Final = _histogram(
    "kubelet_pleg_relist_interval_seconds",
    "Time between two relists, which are rare while events come and are right",
    Source.NODE_WORKER,
    always=True,
)
PLEG_LAST_SEEN: Final = _gauge(
    "kubelet_pleg_last_seen_seconds",
    "Time at which the observation of pods last went on, in seconds since the epoch",
    Source.NODE_WORKER,
    always=True,
)
PLEG_POD_RELIST_DURATION: Final = _histogram(
    "kubelet_pleg_pod_relist_duration_seconds",
    "Time that the observation of a single pod took",
    Source.NODE_WORKER,
    always=True,
)
EVENT_STREAMS: Final = _counter(
    "kubelet_evented_pleg_connection_success_count",
    "Streams of Podman's events that have begun",
    Source.NODE_WORKER,
    always=True,
)
EVENT_STREAM_ERRORS: Final = _counter(
    "kubelet_evented_pleg_connection_error_count",
    "Streams of Podman's events that did not begin or that broke",
    Source.NODE_WORKER,
    always=True,
)
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
IMAGE_SIZES: Final = (
    (0, "N/A"),
    (1, "0-10MB"),
    (10 * _MIB, "10MB-100MB"),
    (100 * _MIB, "100MB-500MB"),
    (500 * _MIB, "500MB-1GB"),
    (1 * _GIB, "1GB-5GB"),
    (5 * _GIB, "5GB-10GB"),
    (10 * _GIB, "10GB-20GB"),
    (20 * _GIB, "20GB-30GB"),
    (30 * _GIB, "30GB-40GB"),
    (40 * _GIB, "40GB-60GB"),
    (60 * _GIB, "60GB-100GB"),
    (100 * _GIB, "GT100GB"),
)
"""Least size in bytes, and the value of ``image_size_in_bytes`` (pkg/kubelet/metrics/metrics.go, imageSizeBuckets)."""
IMAGE_PULL_DURATION: Final = _histogram(
    "kubelet_image_pull_duration_seconds",
    "Time that a pull took that has succeeded",
    Source.NODE_WORKER,
    label("image_size_in_bytes", *(words for _, words in IMAGE_SIZES)),
    buckets=_PULL_BUCKETS,
)
IMAGES_COLLECTED: Final = _counter(
    "kubelet_image_garbage_collected_total",
    "Unused images that were removed",
    Source.NODE_WORKER,
    label("reason", "age", "space"),
)

# --- several processes --------------------------------------------------------------------------------------------

RUNTIME_OPERATIONS: Final = {
    "version": "version",
    "id_ranges": "status",
    "list_pods": "list_podsandbox",
    "list_empty_pods": "list_podsandbox",
    "list_containers": "list_containers",
    "inspect_pod": "podsandbox_status",
    "inspect_container": "container_status",
    "create_pod": "run_podsandbox",
    "create_container": "create_container",
    "start_container": "start_container",
    "kill_container": "stop_container",
    "exec_container": "exec_sync",
    "remove_container": "remove_container",
    "remove_pod": "remove_podsandbox",
    "inspect_image": "image_status",
    "pull_image": "pull_image",
    "inspect_volume": "volume_status",
    "create_volume": "create_volume",
}
"""Verb of `workers.kubecontainer.runtime.Runtime` to its ``operation_type``; the last two exist with Podman alone."""
STREAM_OPERATIONS: Final = ("attach", "exec", "port_forward")
_OPERATION: Final = label("operation_type", *dict.fromkeys((*RUNTIME_OPERATIONS.values(), *STREAM_OPERATIONS)))
RUNTIME_OPERATIONS_TOTAL: Final = _counter(
    "kubelet_runtime_operations_total", "Calls of Podman", Source.WORKERS, _OPERATION
)
RUNTIME_OPERATIONS_DURATION: Final = _histogram(
    "kubelet_runtime_operations_duration_seconds", "Time that a call of Podman took", Source.WORKERS, _OPERATION
)
CGROUP_MANAGER_DURATION: Final = _histogram(
    "kubelet_cgroup_manager_duration_seconds",
    "Time that systemd took to answer a call about a slice of pods",
    Source.WORKERS,
    label("operation_type", "create", "update", "destroy"),
)
RUNTIME_OPERATIONS_ERRORS: Final = _counter(
    "kubelet_runtime_operations_errors_total",
    "Calls of Podman that failed; that something does not exist is an answer",
    Source.WORKERS,
    _OPERATION,
)

# --- the API server -----------------------------------------------------------------------------------------------

HTTP_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", OTHER)
LONG_RUNNING: Final = frozenset({"exec", "attach", "portForward", "debug"})
"""pkg/kubelet/server/server.go, longRunningRequestPathMap."""
HTTP_PATHS: Final = (
    *("allocatedPods", "api", "attach", "checkpoint", "configz", "container", "containerLogs", "debug", "exec"),
    *("flagz", "healthz", "livez", "logs"),
    *("metrics", "metrics/cadvisor", "metrics/probes", "metrics/resource", "metrics/slis", "podInfo"),
    *("pods", "portForward", "readyz", "rootlet", "run", "runningpods", "spec", "stats", "statusz", "version", OTHER),
)
"""First part of a path (pkg/kubelet/server/server.go, getMetricBucket's callers); ``api`` and ``rootlet`` are ours."""
SERVER_TYPES: Final = ("admin", "readwrite", "readonly")
"""``admin`` is the admin socket."""
_HTTP_LABELS: Final = (
    Labels(("long_running", "path"), tuple((_FLAG[path in LONG_RUNNING], path) for path in HTTP_PATHS)),
    label("method", *HTTP_METHODS),
    label("server_type", *SERVER_TYPES),
)
HTTP_REQUESTS: Final = _counter(
    "kubelet_http_requests_total", "Requests to the agent's server", Source.API_SERVER, *_HTTP_LABELS
)
HTTP_REQUESTS_DURATION: Final = _histogram(
    "kubelet_http_requests_duration_seconds",
    "Time to answer a request; of a stream, to its end",
    Source.API_SERVER,
    *_HTTP_LABELS,
)
HEALTH_CHECKS: Final = ("ping", "log", "syncloop", "relist", "podman", "workers", OTHER)
HEALTH_CHECKS_TOTAL: Final = counter(
    "kubernetes_healthchecks_total",
    "Health checks by their result",
    Source.API_SERVER,
    label("name", *HEALTH_CHECKS),
    label("status", "success", "error"),
    label("type", "healthz"),
    stability=Stability.STABLE,
    endpoint=Endpoint.SLIS,
)
WEBSOCKETS: Final = _counter(
    "kubelet_websocket_streaming_requests_total",
    "Streams over WebSockets that were asked for",
    Source.API_SERVER,
    label("subresource", "exec", "attach", "portforward"),
)

# --- read at the scrape -------------------------------------------------------------------------------------------


HEALTH_CHECK: Final = gauge(
    "kubernetes_healthcheck",
    "Result of a health check made now: 1 is healthy",
    Source.SCRAPE,
    *("name", "type"),
    stability=Stability.STABLE,
    endpoint=Endpoint.SLIS,
)
NODE_NAME: Final = _gauge("kubelet_node_name", "Name of the node", Source.SCRAPE, "node")
DESIRED_PODS: Final = _gauge("kubelet_desired_pods", "Pods that the sources state", Source.SCRAPE, "static")
ACTIVE_PODS: Final = _gauge(
    "kubelet_active_pods", "Pods that count when another one is to be admitted", Source.SCRAPE, "static"
)
IN_PROGRESS_RESIZES: Final = _gauge("kubelet_pod_in_progress_resizes", "Pods that are being resized", Source.SCRAPE)
PENDING_RESIZES: Final = _gauge(
    "kubelet_pod_pending_resizes", "Pods whose resize waits, or can never be done", Source.SCRAPE, "reason"
)
RUNNING_PODS: Final = _gauge("kubelet_running_pods", "Pods whose sandbox runs", Source.SCRAPE)
RUNNING_CONTAINERS: Final = _gauge(
    "kubelet_running_containers", "Containers by their state", Source.SCRAPE, "container_state"
)
EPHEMERAL_CONTAINERS: Final = _gauge(
    "kubelet_managed_ephemeral_containers", "Ephemeral containers of all pods", Source.SCRAPE
)
VOLUMES: Final = _gauge("volume_manager_total_volumes", "Volumes of all pods", Source.SCRAPE, "plugin_name", "state")
HTTP_INFLIGHT: Final = _gauge(
    "kubelet_http_inflight_requests",
    "Requests under way",
    Source.SCRAPE,
    *("long_running", "method", "path", "server_type"),
)
BUILD_INFO: Final = gauge(
    "kubernetes_build_info",
    "Version of the agent, always 1; labels that speak of Go are empty or name Python instead",
    Source.SCRAPE,
    *("build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor"),
    "platform",
    stability=Stability.BETA,
)
PROCESS_START_TIME: Final = gauge(
    "process_start_time_seconds",
    "Start of the agent, in seconds since the epoch",
    Source.SCRAPE,
    stability=Stability.NONE,
)
PROCESS_CPU: Final = counter(
    "process_cpu_seconds_total",
    "CPU time of the master; rootlet_process_cpu_seconds_total has all processes",
    Source.SCRAPE,
    stability=Stability.NONE,
)
PROCESS_RSS: Final = gauge(
    "process_resident_memory_bytes", "Resident memory of the master", Source.SCRAPE, stability=Stability.NONE
)
PROCESS_VIRTUAL: Final = gauge(
    "process_virtual_memory_bytes", "Virtual memory of the master", Source.SCRAPE, stability=Stability.NONE
)
PROCESS_OPEN_FDS: Final = gauge(
    "process_open_fds", "Open file descriptors of the master", Source.SCRAPE, stability=Stability.NONE
)
PROCESS_MAX_FDS: Final = gauge(
    "process_max_fds", "Most file descriptors of the master", Source.SCRAPE, stability=Stability.NONE
)

METRICS: Final[tuple[Metric, ...]] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of this module."""
