"""Metrics of a kubelet 1.36 that are not served, and why. A name that ends in ``*`` speaks for all that begin so."""

from __future__ import annotations

from typing import Final

NO_API_SERVER: Final = "there is no API server to speak to"
NO_DEVICES: Final = "no device plugins and no dynamic resource allocation"
NO_PINNING: Final = "no CPU, memory or topology manager: rootless, no CPU set is ours to divide"
PART_OF_SYNC: Final = "a resize is a step of a sync, which `kubelet_pod_worker_duration_seconds` measures"
WINDOWS: Final = "Windows only"

REASONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Go's runtime; the agent is written in Python", ("go_*",)),
    (
        "the kubelet's library for API servers, which the agent has not",
        (
            *("aggregator_discovery_*", "apiserver_*", "authentication_token_cache_*", "disabled_metrics_total"),
            *("cardinality_enforcement_unexpected_categorizations_total", "hidden_metrics_total"),
            *("registered_metrics_total", "kubernetes_feature_enabled"),
        ),
    ),
    (
        NO_API_SERVER,
        (
            *("kubelet_node_startup_*", "kubelet_pod_status_sync_duration_seconds"),
            *("kubelet_mirror_pods", "kubelet_pod_watch_events_dropped_total"),
            *("kubelet_certificate_manager_client_*", "kubelet_certificate_manager_server_*"),
            "kubelet_server_expiration_renew_errors",
        ),
    ),
    (
        "the client of a cluster has no cache of transports, no metrics of exec plugins, and no resolver of its own",
        ("rest_client_dns_*", "rest_client_exec_*", "rest_client_transport_*"),
    ),
    (
        NO_DEVICES,
        (
            *("dra_*", "kubelet_device_plugin_*", "kubelet_pod_resources_endpoint_*"),
            *("resource_manager_*", "csi_operations_seconds"),
        ),
    ),
    (
        NO_PINNING,
        (
            *("kubelet_cpu_manager_*", "kubelet_memory_manager_*", "kubelet_topology_manager_*"),
            *("kubelet_container_aligned_compute_resources_*", "kubelet_memory_qos_*"),
        ),
    ),
    (
        PART_OF_SYNC,
        ("kubelet_pod_resize_duration_milliseconds",),
    ),
    (WINDOWS, ("kubelet_started_host_process_containers_*",)),
    (
        "`rootlet doctor` tells about the host's cgroups, and each statistic where it is from",
        ("kubelet_cgroup_version", "kubelet_metrics_provider"),
    ),
    ("Podman has no CRI", ("kubelet_cri_losing_support",)),
    (
        "it is told by what follows a lost event: relists, and `kubelet_evented_pleg_connection_error_count`",
        ("kubelet_pleg_discard_events", "kubelet_evented_pleg_connection_latency_seconds"),
    ),
    (
        "pull records are files, read when they are asked for; there is no cache, and no intent outlives a pull",
        ("kubelet_imagemanager_*",),
    ),
    (
        "`kubelet_desired_pods` and `rootlet_pods` say it: every pod of ours is static and known",
        ("kubelet_working_pods", "kubelet_first_network_pod_start_sli_duration_seconds"),
    ),
    (
        "directories of pods that are gone are removed in passing; failures are events of the node",
        ("kubelet_orphan_pod_cleaned_volumes", "kubelet_orphan_pod_cleaned_volumes_errors"),
    ),
    (
        "volumes are directories that a sync makes: nothing is reconstructed, attached or operated on by itself",
        (
            *("force_cleaned_failed_volume_*", "reconstruct_volume_*", "storage_operation_duration_seconds"),
            *("volume_operation_total_seconds", "kubelet_image_volume_*"),
        ),
    ),
    (
        "CSI drivers report it, and there are none",
        ("kubelet_volume_stats_health_status_abnormal",),
    ),
    (
        "the volumes of all pods are counted together, in a round of statistics",
        ("kubelet_volume_metric_collection_duration_seconds",),
    ),
    ("Podman labels what it mounts", ("volume_manager_selinux_*",)),
    (
        "the queue is one of due times: nothing works on an item, and nothing is put back",
        (
            *("workqueue_longest_running_processor_seconds", "workqueue_queue_duration_seconds"),
            *("workqueue_retries_total", "workqueue_unfinished_work_seconds", "workqueue_work_duration_seconds"),
        ),
    ),
    (
        "network counters of a process are those of its namespace, which is the host's",
        ("process_network_receive_bytes_total", "process_network_transmit_bytes_total"),
    ),
    ("no limit of virtual memory is set", ("process_virtual_memory_max_bytes",)),
    # cAdvisor
    ("cAdvisor is not there", ("cadvisor_version_info",)),
    ("the machine's facts are on `/spec/`", ("machine_*",)),
    (
        "the kernel counts it for whole devices, not for a container without an I/O controller of its own",
        (
            *("container_blkio_device_usage_total", "container_fs_io_*", "container_fs_read_seconds_total"),
            *("container_fs_reads_merged_total", "container_fs_sector_reads_total"),
            *("container_fs_sector_writes_total", "container_fs_write_seconds_total"),
            "container_fs_writes_merged_total",
        ),
    ),
    (
        "it takes a look at every process of a container, each time",
        (
            *("container_cpu_load_average_10s", "container_cpu_load_d_average_10s", "container_file_descriptors"),
            *("container_sockets", "container_tasks_state", "container_threads_max", "container_ulimits_soft"),
        ),
    ),
    ("bursts of CPU quotas cannot be set", ("container_cpu_cfs_burst_*",)),
    ("Podman's health checks are not used: probes are on /metrics/probes", ("container_health_state",)),
    (
        "what a manifest asks for is in the pod, on `/pods`; what is enforced is among the statistics",
        (
            *("container_spec_cpu_period", "container_spec_cpu_quota", "container_spec_cpu_shares"),
            "container_spec_memory_reservation_limit_bytes",
        ),
    ),
)
"""Why, and the names."""


def speaks_for(pattern: str, name: str) -> bool:
    """Whether a name in the table means that metric."""
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
