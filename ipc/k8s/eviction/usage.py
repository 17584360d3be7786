"""Use of the node's resources by pods, as far as eviction ranks by it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class DiskUsage(msgspec.Struct, frozen=True, array_like=True):
    """Files of a directory; None of a figure that is not known."""

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
    files: DiskUsage | None = None
    """Files that were mounted into its containers: hosts, resolv.conf, termination messages."""
