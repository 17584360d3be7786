"""Use of the node's resources by pods, as far as eviction ranks by it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipc.stats.values import ContainerSample, FileSystem, Memory, PodSample


class DiskUsage(msgspec.Struct, frozen=True, array_like=True):
    """What lies in a directory; None of a figure that is not known."""

    used: int | None = None
    """Bytes."""
    inodes: int | None = None


class ContainerUsage(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One container."""

    name: str
    memory: int | None = None
    """Working set in bytes."""
    rootfs: DiskUsage | None = None
    """Writable layer."""
    logs: DiskUsage | None = None


class PodUsage(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One pod."""

    uid: str
    memory: int | None = None
    """Working set in bytes."""
    processes: int | None = None
    containers: tuple[ContainerUsage, ...] = ()
    volumes: Mapping[str, DiskUsage] = {}
    """By name."""


def usage_of(sample: PodSample) -> PodUsage:
    """Of a pod's statistics."""
    return PodUsage(
        uid=sample.uid,
        memory=_working_set(sample.memory),
        processes=sample.processes.count if sample.processes is not None else None,
        containers=tuple(map(_container, sample.containers)),
        volumes={volume.name: _disk(volume.fs) or DiskUsage() for volume in sample.volumes},
    )


def _container(sample: ContainerSample) -> ContainerUsage:
    return ContainerUsage(
        name=sample.name, memory=_working_set(sample.memory), rootfs=_disk(sample.rootfs), logs=_disk(sample.logs)
    )


def _working_set(memory: Memory | None) -> int | None:
    return memory.working_set if memory is not None else None


def _disk(fs: FileSystem | None) -> DiskUsage | None:
    return DiskUsage(fs.used, fs.inodes_used) if fs is not None else None
