"""cAdvisor's v1 ContainerInfo of a container, or of the whole host: specification and samples.

Mirrors vendor/github.com/google/cadvisor/info/v1/container.go, as the first kubelets answered it under /stats/.
cAdvisor has no absent figures: what is not known has no key here instead of a 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ipc.host.clock import rfc3339_micro
from workers.statsapi import values

DEFAULT_SAMPLES = 60
"""Samples of an answer unless a request says otherwise (pkg/kubelet/server/stats: NumStats)."""
NAMESPACE = "podman"
"""cAdvisor's namespace of container names."""


class ContainerInfoRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Body of a POST (info/v1 ContainerInfoRequest, and the kubelet's StatsRequest)."""

    num_stats: int = DEFAULT_SAMPLES
    """The newest ones; a negative number is all."""


class _Shape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base: what is None is left out."""


class CpuUsage(_Shape, frozen=True, kw_only=True):
    total: int | None = None
    user: int | None = None
    system: int | None = None


class CpuCfs(_Shape, frozen=True, kw_only=True):
    periods: int | None = None
    throttled_periods: int | None = None
    throttled_time: int | None = None


class CpuStats(_Shape, frozen=True, kw_only=True):
    usage: CpuUsage
    cfs: CpuCfs | None = None


class Faults(_Shape, frozen=True, kw_only=True):
    pgfault: int | None = None
    pgmajfault: int | None = None


class MemoryStats(_Shape, frozen=True, kw_only=True):
    usage: int | None = None
    max_usage: int | None = None
    cache: int | None = None
    rss: int | None = None
    swap: int | None = None
    mapped_file: int | None = None
    working_set: int | None = None
    failcnt: int | None = None
    total_active_file: int | None = None
    total_inactive_file: int | None = None
    kernel: int | None = None
    container_data: Faults | None = None
    hierarchical_data: Faults | None = None


class InterfaceStats(_Shape, frozen=True, kw_only=True):
    name: str
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class NetworkStats(_Shape, frozen=True, kw_only=True):
    interfaces: tuple[InterfaceStats, ...] = ()


class FsStats(_Shape, frozen=True, kw_only=True):
    device: str = ""
    type: str = ""
    capacity: int | None = None
    usage: int | None = None
    available: int | None = None
    has_inodes: bool = False
    inodes: int | None = None
    inodes_free: int | None = None


class ProcessStats(_Shape, frozen=True, kw_only=True):
    process_count: int | None = None
    thread_count: int | None = None


class ContainerStats(_Shape, frozen=True, kw_only=True):
    timestamp: str
    cpu: CpuStats | None = None
    memory: MemoryStats | None = None
    network: NetworkStats | None = None
    filesystem: tuple[FsStats, ...] = ()
    processes: ProcessStats | None = None


class MemorySpec(_Shape, frozen=True, kw_only=True):
    limit: int | None = None
    swap_limit: int | None = None


class ContainerSpec(_Shape, frozen=True, kw_only=True):
    creation_time: str
    labels: Mapping[str, str] = {}
    has_cpu: bool
    has_memory: bool
    memory: MemorySpec | None = None
    has_network: bool
    has_processes: bool
    has_filesystem: bool
    has_diskio: bool
    image: str = ""


class ContainerInfo(_Shape, frozen=True, kw_only=True):
    id: str = ""
    name: str
    aliases: tuple[str, ...] = ()
    namespace: str = ""
    spec: ContainerSpec
    stats: tuple[ContainerStats, ...]


def container_info(
    pod: values.PodSample, container: values.ContainerSample, samples: Sequence[values.ContainerSample]
) -> ContainerInfo:
    """One container; ``samples`` of it, oldest first."""
    return ContainerInfo(
        id=container.id,
        name=f"/{NAMESPACE}/{container.id}",
        aliases=(f"{pod.namespace}_{pod.name}_{container.name}", container.id),
        namespace=NAMESPACE,
        spec=ContainerSpec(
            creation_time=rfc3339_micro(container.started_at),
            labels={
                "io.kubernetes.container.name": container.name,
                "io.kubernetes.pod.name": pod.name,
                "io.kubernetes.pod.namespace": pod.namespace,
                "io.kubernetes.pod.uid": pod.uid,
            },
            has_cpu=container.cpu is not None,
            has_memory=container.memory is not None,
            memory=_memory_spec(container.memory),
            has_network=False,
            has_processes=container.processes is not None,
            has_filesystem=container.rootfs is not None,
            has_diskio=False,
            image=container.image,
        ),
        stats=tuple(_container_stats(sample) for sample in samples),
    )


def host_info(nodes: Sequence[values.NodeSample]) -> ContainerInfo:
    """The whole host, as cAdvisor's container ``/``; samples of it, oldest first and at least one."""
    node = nodes[-1]
    return ContainerInfo(
        name="/",
        spec=ContainerSpec(
            creation_time=rfc3339_micro(node.started_at),
            has_cpu=node.cpu is not None,
            has_memory=node.memory is not None,
            memory=_memory_spec(node.memory),
            has_network=node.network is not None,
            has_processes=node.process_limit is not None,
            has_filesystem=node.fs is not None,
            has_diskio=False,
        ),
        stats=tuple(_host_stats(sample) for sample in nodes),
    )


def _container_stats(sample: values.ContainerSample) -> ContainerStats:
    time = sample.cpu.time if sample.cpu is not None else sample.started_at
    processes = sample.processes
    return ContainerStats(
        timestamp=rfc3339_micro(time),
        cpu=_cpu(sample.cpu),
        memory=_memory(sample.memory),
        filesystem=_filesystems(sample.rootfs),
        processes=ProcessStats(process_count=processes.count, thread_count=processes.threads) if processes else None,
    )


def _host_stats(node: values.NodeSample) -> ContainerStats:
    time = node.cpu.time if node.cpu is not None else node.started_at
    return ContainerStats(
        timestamp=rfc3339_micro(time),
        cpu=_cpu(node.cpu),
        memory=_memory(node.memory),
        network=_network(node.network),
        filesystem=_filesystems(node.fs, _of_the_device(node.image_fs)),
        processes=ProcessStats(thread_count=node.process_limit.processes) if node.process_limit else None,
    )


def _cpu(cpu: values.Cpu | None) -> CpuStats | None:
    if cpu is None:
        return None
    cfs = CpuCfs(periods=cpu.periods, throttled_periods=cpu.throttled_periods, throttled_time=cpu.throttled_ns)
    return CpuStats(
        usage=CpuUsage(total=cpu.usage_ns, user=cpu.user_ns, system=cpu.system_ns),
        cfs=cfs if cpu.periods is not None else None,
    )


def _memory(memory: values.Memory | None) -> MemoryStats | None:
    if memory is None:
        return None
    faults = Faults(pgfault=memory.page_faults, pgmajfault=memory.major_page_faults)
    return MemoryStats(
        usage=memory.usage,
        max_usage=memory.max_usage,
        cache=memory.cache,
        rss=memory.rss,
        swap=memory.swap,
        mapped_file=memory.mapped_file,
        working_set=memory.working_set,
        failcnt=memory.limit_hits,
        total_active_file=memory.active_file,
        total_inactive_file=memory.inactive_file,
        kernel=memory.kernel,
        container_data=faults,
        hierarchical_data=faults,
    )


def _memory_spec(memory: values.Memory | None) -> MemorySpec | None:
    return MemorySpec(limit=memory.limit, swap_limit=memory.swap_limit) if memory is not None else None


def _network(network: values.Network | None) -> NetworkStats | None:
    if network is None:
        return None
    return NetworkStats(
        interfaces=tuple(InterfaceStats(**msgspec.structs.asdict(interface)) for interface in network.interfaces)
    )


def _of_the_device(images: values.FileSystem | None) -> values.FileSystem | None:
    """Without what images use: cAdvisor's figure is that of everything on the device."""
    return msgspec.structs.replace(images, used=None) if images is not None else None


def _filesystems(*several: values.FileSystem | None) -> tuple[FsStats, ...]:
    return tuple(
        FsStats(
            device=fs.device,
            type=fs.type,
            capacity=fs.capacity,
            usage=fs.used,
            available=fs.available,
            has_inodes=fs.inodes is not None,
            inodes=fs.inodes,
            inodes_free=fs.inodes_free,
        )
        for fs in several
        if fs is not None
    )
