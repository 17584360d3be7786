"""Samples of what the node, its pods, containers and volumes use, with the source of each group of figures. Pure.

A figure that is not known is None, never 0. Counters (CPU time, page faults, bytes of I/O and network) rise as long as
the container, or the agent's observation of the pod, lasts. Sizes in bytes, CPU time in nanoseconds, ``time`` in epoch
seconds.
"""

from __future__ import annotations

import enum
from typing import Any, Final

import msgspec


class Source(enum.StrEnum):
    """Where a group of figures is from."""

    CGROUP = "cgroup"
    """Files of the container's own cgroup: exact, what has ended counts."""
    PROCESSES = "processes"
    """Sum over the container's processes in /proc. Pages that they share count for each of them, page cache never."""
    CONTAINERS = "containers"
    """Sum over a pod's containers, or the node's pods."""
    HOST = "host"
    """Files of /proc about the whole host."""


class _Value(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Base of all samples. Arrays, because a snapshot lies in shared memory a dozen times: with names it is twice as
    large."""


class Stall(_Value, frozen=True, kw_only=True):
    """One line of a pressure file (Documentation/accounting/psi.rst)."""

    total_us: int
    avg10: float
    """Per cent of the last ten seconds."""
    avg60: float
    avg300: float


class Pressure(_Value, frozen=True, kw_only=True):
    """Pressure stall information of one resource."""

    some: Stall
    full: Stall | None = None


class Cpu(_Value, frozen=True, kw_only=True):
    source: Source
    time: float
    usage_ns: int | None = None
    user_ns: int | None = None
    system_ns: int | None = None
    nano_cores: int | None = None
    """Rate between the two newest samples, in 10^-9 CPUs; None after only one."""
    periods: int | None = None
    """Enforcement periods of the container's quota."""
    throttled_periods: int | None = None
    throttled_ns: int | None = None
    pressure: Pressure | None = None


class Memory(_Value, frozen=True, kw_only=True):
    source: Source
    time: float
    usage: int | None = None
    working_set: int | None = None
    """Usage without what the kernel can drop at once (inactive file pages)."""
    rss: int | None = None
    """Anonymous memory, as the kubelet calls it."""
    cache: int | None = None
    mapped_file: int | None = None
    active_file: int | None = None
    inactive_file: int | None = None
    kernel: int | None = None
    max_usage: int | None = None
    swap: int | None = None
    limit: int | None = None
    """The limit that is enforced; None without one."""
    swap_limit: int | None = None
    page_faults: int | None = None
    major_page_faults: int | None = None
    oom_kills: int | None = None
    limit_hits: int | None = None
    pressure: Pressure | None = None


class Io(_Value, frozen=True, kw_only=True):
    """Bytes and operations on block devices."""

    source: Source
    time: float
    read_bytes: int | None = None
    write_bytes: int | None = None
    reads: int | None = None
    writes: int | None = None
    pressure: Pressure | None = None


class Interface(_Value, frozen=True, kw_only=True):
    """Counters of one network interface."""

    name: str
    rx_bytes: int
    rx_packets: int
    rx_errors: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_errors: int
    tx_dropped: int


class Network(_Value, frozen=True, kw_only=True):
    """Interfaces of one network namespace, without the loopback."""

    time: float
    interfaces: tuple[Interface, ...] = ()
    default: str = ""
    """Name of the interface that the namespace's figures are taken from."""


class Processes(_Value, frozen=True, kw_only=True):
    source: Source
    count: int | None = None
    threads: int | None = None


class FileSystem(_Value, frozen=True, kw_only=True):
    """A file system (statvfs) and, of a directory on it, what that uses."""

    time: float
    path: str = ""
    """Path of the directory, on the host."""
    device: str = ""
    """Source of the mount."""
    type: str = ""
    capacity: int | None = None
    available: int | None = None
    """For processes without privileges."""
    used: int | None = None
    """By the directory; of a whole file system by everything. None when there is too much to count."""
    inodes: int | None = None
    inodes_free: int | None = None
    inodes_used: int | None = None


class ContainerSample(_Value, frozen=True, kw_only=True):
    """One running container."""

    id: str
    name: str
    attempt: int = 0
    image: str = ""
    started_at: float = 0.0
    """Epoch seconds."""
    cpu: Cpu | None = None
    memory: Memory | None = None
    io: Io | None = None
    processes: Processes | None = None
    rootfs: FileSystem | None = None
    """Writable layer."""
    logs: FileSystem | None = None


class VolumeSample(_Value, frozen=True, kw_only=True):
    """One volume of a pod, of a kind that takes space of the node."""

    name: str
    plugin: str
    """The kind, e.g. ``kubernetes.io~empty-dir``."""
    fs: FileSystem
    claim: str = ""
    """Name of the claim that it is, or stands for, in the pod's namespace; empty of any other volume."""


class PodSample(_Value, frozen=True, kw_only=True):
    """One pod with something that runs."""

    uid: str
    name: str
    namespace: str
    started_at: float = 0.0
    containers: tuple[ContainerSample, ...] = ()
    infra: ContainerSample | None = None
    cpu: Cpu | None = None
    """Use of the containers and the infra container. Containers that have been removed since go on counting."""
    memory: Memory | None = None
    io: Io | None = None
    network: Network | None = None
    """None when it has the host's."""
    processes: Processes | None = None
    volumes: tuple[VolumeSample, ...] = ()
    ephemeral_storage: FileSystem | None = None
    """Writable layers, logs and emptyDirs on the disk; ``used`` is None when one of these is not known."""


class SystemContainer(_Value, frozen=True, kw_only=True):
    """Processes of the node that are no pod's: ``kubelet`` (the agent), ``runtime`` (Podman's service), and ``pods``
    (all pods together)."""

    name: str
    started_at: float = 0.0
    cpu: Cpu | None = None
    memory: Memory | None = None
    io: Io | None = None


class ProcessLimit(_Value, frozen=True, kw_only=True):
    """The kernel's limit of processes and threads, and how many there are (pkg/kubelet/stats/pidlimit)."""

    time: float
    max_pid: int | None = None
    processes: int | None = None


class NodeSample(_Value, frozen=True, kw_only=True):
    """The whole host."""

    name: str
    started_at: float = 0.0
    """When it was booted, in epoch seconds."""
    cpu: Cpu | None = None
    memory: Memory | None = None
    io: Io | None = None
    network: Network | None = None
    fs: FileSystem | None = None
    """The file system of the pods' directories."""
    image_fs: FileSystem | None = None
    """The file system of Podman's storage."""
    process_limit: ProcessLimit | None = None
    system_containers: tuple[SystemContainer, ...] = ()


class Snapshot(_Value, frozen=True, kw_only=True):
    """One housekeeping of the collector."""

    time: float
    """Epoch seconds at which it began."""
    mono: float
    """When it began, in monotonic seconds."""
    number: int = 0
    """Rises by one from each to the next since statistics were last asked for."""
    node: NodeSample
    pods: tuple[PodSample, ...] = ()
    omitted_pods: int = 0
    """Pods for which there was no room in shared memory."""


def with_names(value: Any) -> Any:
    """A sample as plain data for people: by the names of the fields, without those that are not known."""
    if isinstance(value, msgspec.Struct):
        fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: with_names(each) for name, each in fields if each is not None and each != ()}
    return [with_names(each) for each in value] if isinstance(value, tuple) else value


_DECODER: Final = msgspec.msgpack.Decoder(Snapshot)
_ENCODER: Final = msgspec.msgpack.Encoder()


def encode_snapshot(snapshot: Snapshot, max_bytes: int) -> bytes:
    """MessagePack of at most ``max_bytes``: pods that have no room are left out and counted."""
    packed = _ENCODER.encode(snapshot)
    while len(packed) > max_bytes and snapshot.pods:
        kept = snapshot.pods[: len(snapshot.pods) * max_bytes // (len(packed) + max_bytes // 16)]
        omitted = snapshot.omitted_pods + len(snapshot.pods) - len(kept)
        snapshot = msgspec.structs.replace(snapshot, pods=kept, omitted_pods=omitted)
        packed = _ENCODER.encode(snapshot)
    return packed


def decode_snapshot(packed: bytes) -> Snapshot:
    """Raises msgspec.DecodeError."""
    return _DECODER.decode(packed)
