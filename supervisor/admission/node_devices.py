"""Devices of this node: those of the configuration, as they are found at each look.

A device that is not there, or that this user may not open, is one that is not healthy to a kubelet: it counts in the
capacity and not in what is allocatable.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from ipc.k8s.podresources.devices import Device, DeviceEdits, Devices
from supervisor.config.cdi_specs import CdiDevice, SpecsRead, node_mount, read_cdi_specs
from supervisor.config.settings import Settings

MAX_TOLD: Final = 3
"""Files that are no specs and are named, where a device is missed."""


def read_devices(settings: Settings) -> Devices:
    """All devices by extended resource and name. Reads CDI specs only if some device is of one."""
    names = settings.devices
    is_any_of_cdi = any(not name.startswith("/") for those in names.values() for name in those)
    specs = read_cdi_specs(settings.cdi_spec_dirs if is_any_of_cdi else ())
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


def _device(name: str, specs: SpecsRead) -> Device:
    if name.startswith("/"):
        mount = node_mount(name, name)
        found = CdiDevice(Device(edits=DeviceEdits(mounts=(mount,))), (mount,))
    elif name in specs.devices:
        found = specs.devices[name]
    else:
        unread = (f"; not read: {problem}" for problem in specs.problems[:MAX_TOLD])
        return Device(problem="".join(("no CDI spec of cdiSpecDirs has it", *unread)))
    if found.device.problem:
        return found.device
    return Device(edits=found.device.edits, problem=next(filter(None, _problems(found)), ""))


def _problems(found: CdiDevice) -> Iterator[str]:
    """Files of the host that are in the way: of a device that Podman brings in those that are missing, because it would
    start no container."""
    is_podmans = bool(found.device.edits.cdi_names)
    for mount in found.mounts:
        yield _missing(mount.host_path) if is_podmans else _problem(mount.host_path, mount.options)
    yield from (f"hook {path}: is not a program" for path in found.programs if not _is_program(path))


def _missing(path: str) -> str:
    try:
        os.stat(path)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


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
