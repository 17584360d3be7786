"""Devices of this node: those of the configuration, as they are found at each look.

A device that is not there, or that this user may not open, is one that is not healthy to a kubelet: it counts in the
capacity and not in what is allocatable.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence

from ipc.podresources.devices import Device, DeviceEdits, Devices
from supervisor.config.cdi_specs import node_mount, read_cdi_specs
from supervisor.config.settings import Settings


def read_devices(settings: Settings) -> Devices:
    """All devices by extended resource and name. Reads CDI specs only if some device is of one."""
    names = settings.devices
    specs = {}
    if any(not name.startswith("/") for those in names.values() for name in those):
        specs = dict(read_cdi_specs(settings.cdi_spec_dirs).devices)
    return {resource: {name: _device(name, specs) for name in those} for resource, those in names.items()}


def capacity_of(devices: Devices) -> dict[str, str]:
    """Number of devices of each resource (GetCapacity, pkg/kubelet/cm/devicemanager/manager.go)."""
    return {resource: str(len(those)) for resource, those in devices.items()}


def not_healthy(devices: Devices) -> dict[str, str]:
    """Number of those that are kept from pods, of each resource that has any."""
    counts = {resource: sum(bool(device.problem) for device in those.values()) for resource, those in devices.items()}
    return {resource: str(count) for resource, count in counts.items() if count}


def device_problems(devices: Devices) -> Iterator[str]:
    """One line for each device that no pod is given."""
    for resource, those in devices.items():
        yield from (f"{resource}: {name}: {device.problem}" for name, device in those.items() if device.problem)


def _device(name: str, specs: Mapping[str, Device]) -> Device:
    if name.startswith("/"):
        found = Device(edits=DeviceEdits(mounts=(node_mount(name, name),)))
    elif name in specs:
        found = specs[name]
    else:
        return Device(problem="no CDI spec of cdiSpecDirs has it")
    if found.problem:
        return found
    problem = next(filter(None, (_problem(mount.host_path, mount.options) for mount in found.edits.mounts)), "")
    return Device(edits=found.edits, problem=problem)


def _problem(path: str, options: Sequence[str]) -> str:
    """Why a file cannot be given to a container; a mount may be of any kind of file, in ``/dev`` of devices only."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return f"{path}: {error.strerror}"
    is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    if path.startswith("/dev/") and not is_device:
        return f"{path}: is not a device"
    wanted = os.R_OK if "ro" in options or not is_device else os.R_OK | os.W_OK
    return "" if os.access(path, wanted) else f"{path}: this user may not open it"
