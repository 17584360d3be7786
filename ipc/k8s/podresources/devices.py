"""Devices of the configuration, and those that a pod's containers were given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

Allocated = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Names of devices by container and extended resource."""
NOTHING: Final[Allocated] = {}


class DeviceMount(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of the host, most often a device node, and its place in the container."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    """Options of the mount, such as ``ro``."""


class DeviceEdits(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes to a container that is given a device (CDI's containerEdits, as far as Podman's API can say them)."""

    env: Mapping[str, str] = {}
    mounts: tuple[DeviceMount, ...] = ()
    cdi_names: tuple[str, ...] = ()
    """Devices that Podman is left to resolve."""


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One device."""

    edits: DeviceEdits = DeviceEdits()
    problem: str = ""
    """Why no container is given it; empty: it is healthy."""


Devices = Mapping[str, Mapping[str, Device]]
"""All devices by extended resource and name, in the order of the configuration."""
