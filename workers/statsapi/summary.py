"""The summary API: a snapshot as stats/v1alpha1 Summary (staging/src/k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go).

Mirrors pkg/kubelet/stats/helper.go and pkg/kubelet/server/stats/summary.go. A figure that is not known is absent, as
upstream. The type has no place for where a figure is from: the snapshot itself tells.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipc.host.clock import rfc3339
from workers.statsapi import values


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all answers: what is None is left out."""


class PsiData(_Shape, frozen=True, kw_only=True):
    """One line of a pressure file. ``total`` in microseconds, as the kernel has it and upstream passes it on."""

    total: int | None = None
    avg10: float | None = None
    avg60: float | None = None
    avg300: float | None = None


class PsiStats(_Shape, frozen=True, kw_only=True):
    full: PsiData | None = None
    some: PsiData | None = None


class CpuStats(_Shape, frozen=True, kw_only=True):
    time: str
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None
    psi: PsiStats | None = None


class MemoryStats(_Shape, frozen=True, kw_only=True):
    time: str
    available_bytes: int | None = None
    """Up to the limit; absent without one."""
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None
    psi: PsiStats | None = None


class IoStats(_Shape, frozen=True, kw_only=True):
    time: str
    psi: PsiStats | None = None


class SwapStats(_Shape, frozen=True, kw_only=True):
    time: str
    swap_available_bytes: int | None = None
    swap_usage_bytes: int | None = None


class InterfaceStats(_Shape, frozen=True, kw_only=True):
    name: str
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None


class NetworkStats(_Shape, frozen=True, kw_only=True):
    time: str
    name: str | None = None
    """Name of the default interface, whose counters follow."""
    rx_bytes: int | None = None
    rx_errors: int | None = None
    tx_bytes: int | None = None
    tx_errors: int | None = None
    interfaces: tuple[InterfaceStats, ...] | None = None


class FsStats(_Shape, frozen=True, kw_only=True):
    time: str
    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class PvcReference(_Shape, frozen=True, kw_only=True):
    name: str
    namespace: str


class VolumeStats(FsStats, frozen=True, kw_only=True):
    name: str
    pvc_ref: PvcReference | None = None


class RuntimeStats(_Shape, frozen=True, kw_only=True):
    image_fs: FsStats | None = None
    container_fs: FsStats | None = None


class RlimitStats(_Shape, frozen=True, kw_only=True):
    time: str
    maxpid: int | None = None
    curproc: int | None = None


class ProcessStats(_Shape, frozen=True, kw_only=True):
    process_count: int | None = msgspec.field(name="process_count", default=None)


class ContainerStats(_Shape, frozen=True, kw_only=True):
    name: str
    start_time: str | None = None
    cpu: CpuStats | None = None
    memory: MemoryStats | None = None
    io: IoStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None
    swap: SwapStats | None = None


class PodReference(_Shape, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str


class PodStats(_Shape, frozen=True, kw_only=True):
    pod_ref: PodReference
    start_time: str
    containers: tuple[ContainerStats, ...]
    cpu: CpuStats | None = None
    memory: MemoryStats | None = None
    io: IoStats | None = None
    network: NetworkStats | None = None
    volume: tuple[VolumeStats, ...] | None = None
    ephemeral_storage: FsStats | None = msgspec.field(name="ephemeral-storage", default=None)
    process_stats: ProcessStats | None = msgspec.field(name="process_stats", default=None)
    swap: SwapStats | None = None


class NodeStats(_Shape, frozen=True, kw_only=True):
    node_name: str
    system_containers: tuple[ContainerStats, ...] | None = None
    start_time: str
    cpu: CpuStats | None = None
    memory: MemoryStats | None = None
    io: IoStats | None = None
    network: NetworkStats | None = None
    fs: FsStats | None = None
    runtime: RuntimeStats | None = None
    rlimit: RlimitStats | None = None
    swap: SwapStats | None = None


class Summary(_Shape, frozen=True, kw_only=True):
    node: NodeStats
    pods: tuple[PodStats, ...]


def summary(snapshot: values.Snapshot, *, only_cpu_and_memory: bool = False) -> Summary:
    """The whole answer. ``only_cpu_and_memory`` leaves out I/O, network, file systems, volumes and processes."""
    is_whole = not only_cpu_and_memory
    return Summary(node=_node(snapshot.node, is_whole), pods=tuple(_pod(pod, is_whole) for pod in snapshot.pods))


def _node(node: values.NodeSample, is_whole: bool) -> NodeStats:
    stats = NodeStats(
        node_name=node.name,
        system_containers=tuple(_system_container(c, is_whole) for c in node.system_containers),
        start_time=rfc3339(node.started_at),
        cpu=_cpu(node.cpu),
        memory=_memory(node.memory),
        swap=_swap(node.memory),
    )
    if not is_whole:
        return stats
    limit = node.process_limit
    return msgspec.structs.replace(
        stats,
        io=_io(node.io),
        network=_network(node.network),
        fs=_fs(node.fs),
        runtime=RuntimeStats(image_fs=_fs(node.image_fs), container_fs=_fs(node.image_fs)),
        rlimit=RlimitStats(time=rfc3339(limit.time), maxpid=limit.max_pid, curproc=limit.processes) if limit else None,
    )


def _system_container(container: values.SystemContainer, is_whole: bool) -> ContainerStats:
    return ContainerStats(
        name=container.name,
        start_time=rfc3339(container.started_at) if container.started_at else None,
        cpu=_cpu(container.cpu),
        memory=_memory(container.memory),
        io=_io(container.io) if is_whole else None,
        swap=_swap(container.memory),
    )


def _pod(pod: values.PodSample, is_whole: bool) -> PodStats:
    stats = PodStats(
        pod_ref=PodReference(name=pod.name, namespace=pod.namespace, uid=pod.uid),
        start_time=rfc3339(pod.started_at),
        containers=tuple(_container(container, is_whole) for container in pod.containers),
        cpu=_cpu(pod.cpu),
        memory=_memory(pod.memory),
        swap=_swap(pod.memory),
    )
    if not is_whole:
        return stats
    processes = pod.processes
    return msgspec.structs.replace(
        stats,
        io=_io(pod.io),
        network=_network(pod.network),
        volume=tuple(_volumes(pod)) or None,
        ephemeral_storage=_fs(pod.ephemeral_storage),
        process_stats=ProcessStats(process_count=processes.count)
        if processes and processes.count is not None
        else None,
    )


def _container(container: values.ContainerSample, is_whole: bool) -> ContainerStats:
    return ContainerStats(
        name=container.name,
        start_time=rfc3339(container.started_at),
        cpu=_cpu(container.cpu),
        memory=_memory(container.memory),
        io=_io(container.io) if is_whole else None,
        rootfs=_fs(container.rootfs) if is_whole else None,
        logs=_fs(container.logs) if is_whole else None,
        swap=_swap(container.memory),
    )


def _cpu(cpu: values.Cpu | None) -> CpuStats | None:
    if cpu is None:
        return None
    return CpuStats(
        time=rfc3339(cpu.time),
        usage_nano_cores=cpu.nano_cores,
        usage_core_nano_seconds=cpu.usage_ns,
        psi=_psi(cpu.pressure),
    )


def _memory(memory: values.Memory | None) -> MemoryStats | None:
    if memory is None:
        return None
    limit, working_set = memory.limit, memory.working_set
    return MemoryStats(
        time=rfc3339(memory.time),
        available_bytes=max(0, limit - working_set) if limit is not None and working_set is not None else None,
        usage_bytes=memory.usage,
        working_set_bytes=working_set,
        rss_bytes=memory.rss,
        page_faults=memory.page_faults,
        major_page_faults=memory.major_page_faults,
        psi=_psi(memory.pressure),
    )


def _swap(memory: values.Memory | None) -> SwapStats | None:
    if memory is None or memory.swap is None:
        return None
    limit = memory.swap_limit
    return SwapStats(
        time=rfc3339(memory.time),
        swap_available_bytes=max(0, limit - memory.swap) if limit is not None else None,
        swap_usage_bytes=memory.swap,
    )


def _io(io: values.Io | None) -> IoStats | None:
    return IoStats(time=rfc3339(io.time), psi=_psi(io.pressure)) if io is not None else None


def _psi(pressure: values.Pressure | None) -> PsiStats | None:
    return PsiStats(full=_stall(pressure.full), some=_stall(pressure.some)) if pressure is not None else None


def _stall(stall: values.Stall | None) -> PsiData | None:
    if stall is None:
        return None
    return PsiData(total=stall.total_us, avg10=stall.avg10, avg60=stall.avg60, avg300=stall.avg300)


def _network(network: values.Network | None) -> NetworkStats | None:
    if network is None:
        return None
    interfaces = tuple(
        InterfaceStats(
            name=one.name,
            rx_bytes=one.rx_bytes,
            rx_errors=one.rx_errors,
            tx_bytes=one.tx_bytes,
            tx_errors=one.tx_errors,
        )
        for one in network.interfaces
    )
    default = next((one for one in interfaces if one.name == network.default), None)
    chosen = msgspec.structs.asdict(default) if default is not None else {}
    return NetworkStats(time=rfc3339(network.time), interfaces=interfaces, **chosen)


def _fs(fs: values.FileSystem | None) -> FsStats | None:
    if fs is None:
        return None
    return FsStats(
        time=rfc3339(fs.time),
        available_bytes=fs.available,
        capacity_bytes=fs.capacity,
        used_bytes=fs.used,
        inodes_free=fs.inodes_free,
        inodes=fs.inodes,
        inodes_used=fs.inodes_used,
    )


def _volumes(pod: values.PodSample) -> Iterable[VolumeStats]:
    for volume in pod.volumes:
        if (fs := _fs(volume.fs)) is not None:
            claim = PvcReference(name=volume.claim, namespace=pod.namespace) if volume.claim else None
            yield VolumeStats(name=volume.name, pvc_ref=claim, **msgspec.structs.asdict(fs))
