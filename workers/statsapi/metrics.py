"""Metrics of statistics: the resource metrics of the kubelet and the container metrics of cAdvisor. Pure.

Each is a name and a function of a sample to its value; None, of what is not known, is not shown. Of
pkg/kubelet/metrics/collectors/resource_metrics.go and vendor/github.com/google/cadvisor/metrics/prometheus.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from ipc.link.metrics.model import Endpoint, Metric, MetricType, Source, Stability, gauge
from workers.statsapi.values import (
    ContainerSample,
    Cpu,
    FileSystem,
    Interface,
    Io,
    Memory,
    NodeSample,
    PodSample,
    Pressure,
)

S = TypeVar("S")
_NS: Final = 1e-9
_US: Final = 1e-6
_COUNTER, _GAUGE = MetricType.COUNTER, MetricType.GAUGE


class Figure(msgspec.Struct, Generic[S], frozen=True):
    """A metric and its value of a sample; None when that does not have it."""

    metric: Metric
    of: Callable[[S], float | None]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


# --- /metrics/resource --------------------------------------------------------------------------------------------


def _resource(name: str, type: MetricType, help: str, *labels: str, stability: Stability = Stability.STABLE) -> Metric:
    return Metric(
        name=name,
        type=type,
        help=help,
        stability=stability,
        source=Source.SCRAPE,
        endpoint=Endpoint.RESOURCE,
        label_names=labels,
    )


_OF_CONTAINER: Final = ("container", "namespace", "pod")
_OF_POD: Final = ("namespace", "pod")
_ALPHA: Final = Stability.ALPHA

Sampled = NodeSample | PodSample | ContainerSample


def cpu_seconds(sample: Sampled) -> float | None:
    return _times(sample.cpu.usage_ns, _NS) if sample.cpu is not None else None


def _working_set(sample: Sampled) -> float | None:
    return sample.memory.working_set if sample.memory is not None else None


def _swap(sample: Sampled) -> float | None:
    return sample.memory.swap if sample.memory is not None else None


NODE_FIGURES: Final[tuple[Figure[Sampled], ...]] = (
    Figure(_resource("node_cpu_usage_seconds_total", _COUNTER, "CPU time of the host"), cpu_seconds),
    Figure(_resource("node_memory_working_set_bytes", _GAUGE, "Working set of the host"), _working_set),
    Figure(_resource("node_swap_usage_bytes", _GAUGE, "Swap of the host in use", stability=_ALPHA), _swap),
)
POD_FIGURES: Final[tuple[Figure[Sampled], ...]] = (
    Figure(_resource("pod_cpu_usage_seconds_total", _COUNTER, "CPU time of a pod", *_OF_POD), cpu_seconds),
    Figure(_resource("pod_memory_working_set_bytes", _GAUGE, "Working set of a pod", *_OF_POD), _working_set),
    Figure(_resource("pod_swap_usage_bytes", _GAUGE, "Swap of a pod", *_OF_POD, stability=_ALPHA), _swap),
)
_CPU: Final = _resource("container_cpu_usage_seconds_total", _COUNTER, "CPU time of a container", *_OF_CONTAINER)
_START: Final = _resource("container_start_time_seconds", _GAUGE, "Start of a container", *_OF_CONTAINER)
_SET: Final = _resource("container_memory_working_set_bytes", _GAUGE, "Working set of a container", *_OF_CONTAINER)
_SWAP: Final = _resource("container_swap_usage_bytes", _GAUGE, "Swap of a container", *_OF_CONTAINER, stability=_ALPHA)
_SWAP_LIMIT: Final = _resource(
    "container_swap_limit_bytes", _GAUGE, "Limit of a container's swap", *_OF_CONTAINER, stability=_ALPHA
)
CONTAINER_FIGURES: Final[tuple[Figure[ContainerSample], ...]] = (
    Figure(_CPU, cpu_seconds),
    Figure(_SET, _working_set),
    Figure(_START, lambda sample: sample.started_at or None),
    Figure(_SWAP, _swap),
    Figure(_SWAP_LIMIT, lambda sample: sample.memory.swap_limit if sample.memory is not None else None),
)
SCRAPE_ERROR: Final = _resource("resource_scrape_error", _GAUGE, "1 when there were no statistics")

# --- /metrics/cadvisor --------------------------------------------------------------------------------------------

CADVISOR_LABELS: Final = ("container", "id", "image", "name", "namespace", "pod")


def _cadvisor(name: str, type: MetricType, help: str, *labels: str) -> Metric:
    return Metric(
        name=name,
        type=type,
        help=help,
        source=Source.SCRAPE,
        endpoint=Endpoint.CADVISOR,
        label_names=(*CADVISOR_LABELS, *labels),
    )


def _cpu(field: Callable[[Cpu], float | None]) -> Callable[[ContainerSample], float | None]:
    return lambda sample: field(sample.cpu) if sample.cpu is not None else None


def _memory(field: Callable[[Memory], float | None]) -> Callable[[ContainerSample], float | None]:
    return lambda sample: field(sample.memory) if sample.memory is not None else None


def _stalled(pressure: Pressure | None, *, all: bool) -> float | None:
    stall = None if pressure is None else pressure.full if all else pressure.some
    return None if stall is None else stall.total_us * _US


def _io_pressure(io: Io | None, *, all: bool) -> float | None:
    return None if io is None else _stalled(io.pressure, all=all)


CADVISOR_FIGURES: Final[tuple[Figure[ContainerSample], ...]] = (
    Figure(
        _cadvisor("container_cpu_user_seconds_total", _COUNTER, "CPU time in programs"),
        _cpu(lambda cpu: _times(cpu.user_ns, _NS)),
    ),
    Figure(
        _cadvisor("container_cpu_system_seconds_total", _COUNTER, "CPU time in the kernel"),
        _cpu(lambda cpu: _times(cpu.system_ns, _NS)),
    ),
    Figure(
        _cadvisor("container_cpu_cfs_periods_total", _COUNTER, "Periods of the container's CPU limit"),
        _cpu(lambda cpu: cpu.periods),
    ),
    Figure(
        _cadvisor("container_cpu_cfs_throttled_periods_total", _COUNTER, "Periods in which it was throttled"),
        _cpu(lambda cpu: cpu.throttled_periods),
    ),
    Figure(
        _cadvisor("container_cpu_cfs_throttled_seconds_total", _COUNTER, "Time for which it was throttled"),
        _cpu(lambda cpu: _times(cpu.throttled_ns, _NS)),
    ),
    Figure(
        _cadvisor("container_pressure_cpu_waiting_seconds_total", _COUNTER, "Time in which some task had no CPU"),
        _cpu(lambda cpu: _stalled(cpu.pressure, all=False)),
    ),
    Figure(
        _cadvisor("container_pressure_cpu_stalled_seconds_total", _COUNTER, "Time in which no task had a CPU"),
        _cpu(lambda cpu: _stalled(cpu.pressure, all=True)),
    ),
    Figure(
        _cadvisor("container_pressure_memory_waiting_seconds_total", _COUNTER, "Time in which some task had no memory"),
        _memory(lambda memory: _stalled(memory.pressure, all=False)),
    ),
    Figure(
        _cadvisor("container_pressure_memory_stalled_seconds_total", _COUNTER, "Time in which no task had memory"),
        _memory(lambda memory: _stalled(memory.pressure, all=True)),
    ),
    Figure(
        _cadvisor("container_pressure_io_waiting_seconds_total", _COUNTER, "Time in which some task waited for I/O"),
        lambda sample: _io_pressure(sample.io, all=False),
    ),
    Figure(
        _cadvisor("container_pressure_io_stalled_seconds_total", _COUNTER, "Time in which every task waited for I/O"),
        lambda sample: _io_pressure(sample.io, all=True),
    ),
    Figure(
        _cadvisor("container_memory_usage_bytes", _GAUGE, "Memory in use, page cache too"),
        _memory(lambda memory: memory.usage),
    ),
    Figure(
        _cadvisor("container_memory_working_set_bytes", _GAUGE, "Memory in use that cannot be dropped at once"),
        _memory(lambda memory: memory.working_set),
    ),
    Figure(_cadvisor("container_memory_rss", _GAUGE, "Anonymous memory"), _memory(lambda memory: memory.rss)),
    Figure(_cadvisor("container_memory_cache", _GAUGE, "Page cache"), _memory(lambda memory: memory.cache)),
    Figure(
        _cadvisor("container_memory_mapped_file", _GAUGE, "Files that are mapped"),
        _memory(lambda memory: memory.mapped_file),
    ),
    Figure(
        _cadvisor("container_memory_total_active_file_bytes", _GAUGE, "Page cache that was used of late"),
        _memory(lambda memory: memory.active_file),
    ),
    Figure(
        _cadvisor("container_memory_total_inactive_file_bytes", _GAUGE, "Page cache that was not used of late"),
        _memory(lambda memory: memory.inactive_file),
    ),
    Figure(
        _cadvisor("container_memory_kernel_usage", _GAUGE, "Memory of the kernel"),
        _memory(lambda memory: memory.kernel),
    ),
    Figure(
        _cadvisor("container_memory_max_usage_bytes", _GAUGE, "Most memory that was in use"),
        _memory(lambda memory: memory.max_usage),
    ),
    Figure(_cadvisor("container_memory_swap", _GAUGE, "Swap in use"), _memory(lambda memory: memory.swap)),
    Figure(
        _cadvisor("container_memory_failcnt", _COUNTER, "Times that the limit was hit"),
        _memory(lambda memory: memory.limit_hits),
    ),
    Figure(
        _cadvisor("container_oom_events_total", _COUNTER, "Processes that were killed because memory was out"),
        _memory(lambda memory: memory.oom_kills),
    ),
    Figure(
        _cadvisor("container_spec_memory_limit_bytes", _GAUGE, "Limit of memory; 0 without one"),
        _memory(lambda memory: memory.limit or 0),
    ),
    Figure(
        _cadvisor("container_spec_memory_swap_limit_bytes", _GAUGE, "Limit of swap"),
        _memory(lambda memory: memory.swap_limit),
    ),
    Figure(
        _cadvisor("container_processes", _GAUGE, "Processes"),
        lambda sample: sample.processes.count if sample.processes is not None else None,
    ),
    Figure(
        _cadvisor("container_threads", _GAUGE, "Threads"),
        lambda sample: sample.processes.threads if sample.processes is not None else None,
    ),
    Figure(
        _cadvisor("container_start_time_seconds", _GAUGE, "Start, in seconds since the epoch"),
        lambda sample: sample.started_at or None,
    ),
)
CPU_USAGE: Final = _cadvisor("container_cpu_usage_seconds_total", _COUNTER, "CPU time; of all CPUs together", "cpu")
LAST_SEEN: Final = _cadvisor("container_last_seen", _GAUGE, "When it was measured, in seconds since the epoch")
MEMORY_FAILURES: Final = _cadvisor(
    "container_memory_failures_total", _COUNTER, "Page faults, and those that had to read", "failure_type", "scope"
)
DEVICE_FIGURES: Final[tuple[Figure[ContainerSample], ...]] = (
    Figure(
        _cadvisor("container_fs_usage_bytes", _GAUGE, "Size of the writable layer", "device"),
        lambda sample: sample.rootfs.used if sample.rootfs is not None else None,
    ),
    Figure(
        _cadvisor("container_fs_limit_bytes", _GAUGE, "Size of the file system of the writable layer", "device"),
        lambda sample: sample.rootfs.capacity if sample.rootfs is not None else None,
    ),
    Figure(
        _cadvisor("container_fs_inodes_total", _GAUGE, "Inodes of that file system", "device"),
        lambda sample: sample.rootfs.inodes if sample.rootfs is not None else None,
    ),
    Figure(
        _cadvisor("container_fs_inodes_free", _GAUGE, "Inodes of that file system that are free", "device"),
        lambda sample: sample.rootfs.inodes_free if sample.rootfs is not None else None,
    ),
)
IO_FIGURES: Final[tuple[Figure[Io], ...]] = (
    Figure(_cadvisor("container_fs_reads_bytes_total", _COUNTER, "Bytes read", "device"), lambda io: io.read_bytes),
    Figure(
        _cadvisor("container_fs_writes_bytes_total", _COUNTER, "Bytes written", "device"), lambda io: io.write_bytes
    ),
    Figure(_cadvisor("container_fs_reads_total", _COUNTER, "Reads", "device"), lambda io: io.reads),
    Figure(_cadvisor("container_fs_writes_total", _COUNTER, "Writes", "device"), lambda io: io.writes),
)
_NET: Final = "container_network_"
INTERFACE_FIGURES: Final[tuple[Figure[Interface], ...]] = (
    Figure(_cadvisor(f"{_NET}receive_bytes_total", _COUNTER, "Bytes received", "interface"), lambda i: i.rx_bytes),
    Figure(
        _cadvisor(f"{_NET}receive_packets_total", _COUNTER, "Packets received", "interface"), lambda i: i.rx_packets
    ),
    Figure(
        _cadvisor(f"{_NET}receive_packets_dropped_total", _COUNTER, "Packets dropped on receipt", "interface"),
        lambda i: i.rx_dropped,
    ),
    Figure(_cadvisor(f"{_NET}receive_errors_total", _COUNTER, "Errors on receipt", "interface"), lambda i: i.rx_errors),
    Figure(_cadvisor(f"{_NET}transmit_bytes_total", _COUNTER, "Bytes sent", "interface"), lambda i: i.tx_bytes),
    Figure(_cadvisor(f"{_NET}transmit_packets_total", _COUNTER, "Packets sent", "interface"), lambda i: i.tx_packets),
    Figure(
        _cadvisor(f"{_NET}transmit_packets_dropped_total", _COUNTER, "Packets dropped on sending", "interface"),
        lambda i: i.tx_dropped,
    ),
    Figure(
        _cadvisor(f"{_NET}transmit_errors_total", _COUNTER, "Errors on sending", "interface"), lambda i: i.tx_errors
    ),
)
CADVISOR_ERROR: Final = gauge(
    "container_scrape_error", "1 when there were no statistics", Source.SCRAPE, endpoint=Endpoint.CADVISOR
)
LOG_BYTES: Final = gauge(
    "kubelet_container_log_filesystem_used_bytes",
    "Size of a container's logs",
    Source.SCRAPE,
    "container",
    "namespace",
    "pod",
    "uid",
    stability=Stability.ALPHA,
)


def _claim(name: str, help: str) -> Metric:
    return gauge(
        f"kubelet_volume_stats_{name}",
        help,
        Source.SCRAPE,
        "namespace",
        "persistentvolumeclaim",
        stability=Stability.ALPHA,
    )


CLAIM_FIGURES: Final[tuple[Figure[FileSystem], ...]] = (
    Figure(_claim("capacity_bytes", "Capacity in bytes of the volume"), lambda fs: fs.capacity),
    Figure(_claim("available_bytes", "Number of available bytes in the volume"), lambda fs: fs.available),
    Figure(_claim("used_bytes", "Number of used bytes in the volume"), lambda fs: fs.used),
    Figure(_claim("inodes", "Maximum number of inodes in the volume"), lambda fs: fs.inodes),
    Figure(_claim("inodes_free", "Number of free inodes in the volume"), lambda fs: fs.inodes_free),
    Figure(_claim("inodes_used", "Number of used inodes in the volume"), lambda fs: fs.inodes_used),
)

METRICS: Final[tuple[Metric, ...]] = (
    *(figure.metric for figure in (*NODE_FIGURES, *POD_FIGURES)),
    *(figure.metric for figure in (*CONTAINER_FIGURES, *CADVISOR_FIGURES, *DEVICE_FIGURES)),
    *(figure.metric for figure in IO_FIGURES),
    *(figure.metric for figure in INTERFACE_FIGURES),
    *(figure.metric for figure in CLAIM_FIGURES),
    *(SCRAPE_ERROR, CPU_USAGE, LAST_SEEN, MEMORY_FAILURES, CADVISOR_ERROR, LOG_BYTES),
)
"""All of this module."""
