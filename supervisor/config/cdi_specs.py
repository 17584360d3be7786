"""Reads CDI specs (cncf.io, Container Device Interface): what a container that is given a device needs.

Rootlet reads them itself: Podman looks into directories that only root can write to, and its OCI runtime mounts a
device node only where it has the same name on the host. What Podman's API cannot say is left to Podman by the device's
name, where Podman can find it; elsewhere the device is not given to anybody. Work is bounded; a file that cannot be
used costs its own devices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.regular_files import read_regular_file
from ipc.host.text.json_types import UNDECODABLE
from ipc.k8s.podresources.devices import Device, DeviceEdits, DeviceMount
from supervisor.sources.documents.reader import read_documents

PODMANS_DIRECTORIES: Final = ("/etc/cdi", "/var/run/cdi", "/run/cdi")
MAX_SPEC_BYTES: Final = 1 << 20
MAX_SPECS: Final = 200
"""Files of one directory that are looked at."""
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_QUALIFIER: Final = r"[A-Za-z][A-Za-z0-9._-]*[A-Za-z0-9]"
CDI_NAME: Final = re.compile(rf"{_QUALIFIER}/{_QUALIFIER}=[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?")
"""``vendor/class=device``, as Podman parses it (pkg/parser of the reference implementation, which panics over a vendor
or class of one letter)."""
_LEFT_TO_PODMAN: Final = ("hooks", "intelRdt", "additionalGids", "netDevices")
"""Edits that Podman's API has no words for."""


class _Lenient(msgspec.Struct, frozen=True, rename="camel"):
    """Fields that a newer version of the specification adds are passed over."""


class _DeviceNode(_Lenient, frozen=True):
    path: str
    host_path: str = ""
    permissions: str = "rwm"


class _Mount(_Lenient, frozen=True):
    host_path: str
    container_path: str
    options: tuple[str, ...] = ()


class _Hook(_Lenient, frozen=True):
    path: str = ""


class _Edits(_Lenient, frozen=True):
    env: tuple[str, ...] = ()
    device_nodes: tuple[_DeviceNode, ...] = ()
    mounts: tuple[_Mount, ...] = ()
    hooks: tuple[_Hook, ...] = ()
    intel_rdt: Any = None
    additional_gids: tuple[int, ...] = msgspec.field(default=(), name="additionalGids")
    net_devices: tuple[Any, ...] = ()


class _Device(_Lenient, frozen=True):
    name: str
    container_edits: _Edits = _Edits()


class _Spec(_Lenient, frozen=True):
    cdi_version: str
    kind: str
    devices: tuple[_Device, ...] = ()
    container_edits: _Edits = _Edits()


class CdiDevice(msgspec.Struct, frozen=True):
    """A device, and what must be on the host for it, whoever brings it into the container."""

    device: Device
    mounts: tuple[DeviceMount, ...] = ()
    programs: tuple[str, ...] = ()
    """Paths of its hooks."""


class SpecsRead(msgspec.Struct, frozen=True):
    """Devices by complete name, and what is wrong with files."""

    devices: Mapping[str, CdiDevice]
    problems: tuple[str, ...]


def read_cdi_specs(directories: Iterable[str]) -> SpecsRead:
    """Devices of all directories. Of two that state the same device the later one counts; of two files of one
    directory none does (pkg/cdi/cache.go of the reference implementation)."""
    devices: dict[str, CdiDevice] = {}
    problems: list[str] = []
    for directory in directories:
        stated: dict[str, CdiDevice] = {}
        for path in _files(Path(directory)):
            try:
                found = _read(path, is_podmans=directory in PODMANS_DIRECTORIES)
            except (OSError, *UNDECODABLE) as error:
                problems.append(f"{path}: {error}")
                continue
            stated |= {
                name: _not_given(f"stated by {path} and another file of {directory}") if name in stated else device
                for name, device in found.items()
            }
        devices |= stated
    return SpecsRead(devices, tuple(problems))


def _files(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix in _SUFFIXES)[:MAX_SPECS]
    except OSError:  # that there is none is usual
        return []


def _read(path: Path, *, is_podmans: bool) -> dict[str, CdiDevice]:
    """Raises OSError, ValueError, MsgspecError."""
    data = read_regular_file(path, MAX_SPEC_BYTES + 1)
    if len(data) > MAX_SPEC_BYTES:
        raise ValueError(f"more than {MAX_SPEC_BYTES} bytes")
    read = read_documents(data)
    if read.errors:
        raise ValueError(f"{read.errors[0].field}: {read.errors[0].message}".removeprefix(": "))
    if len(read.documents) != 1:
        raise ValueError("must be one document")
    spec = msgspec.convert(read.documents[0].value, _Spec)
    names = (f"{spec.kind}={device.name}" for device in spec.devices)
    return {
        name: _device(name, (spec.container_edits, device.container_edits), is_podmans=is_podmans)
        for name, device in zip(names, spec.devices, strict=True)
    }


def _device(name: str, edits: tuple[_Edits, ...], *, is_podmans: bool) -> CdiDevice:
    mounts = tuple(mount for each in edits for mount in _mounts(each))
    programs = tuple(hook.path for each in edits for hook in each.hooks)
    beyond = _beyond_the_api(edits)
    if problem := _problem(edits, mounts, beyond, is_podmans=is_podmans):
        return _not_given(problem)
    env = dict(_variable(text) for each in edits for text in each.env)
    # Podman gives the variables to the container's own process alone: exec through its API lacks them.
    left = DeviceEdits(env=env, cdi_names=(name,)) if beyond else DeviceEdits(env=env, mounts=mounts)
    return CdiDevice(Device(edits=left), mounts, programs)


def _problem(edits: tuple[_Edits, ...], mounts: Iterable[DeviceMount], beyond: list[str], *, is_podmans: bool) -> str:
    """Why nobody can give the device to a container; empty if somebody can."""
    if beyond and not is_podmans:
        where = " or ".join(PODMANS_DIRECTORIES[:2])
        return f"needs {', '.join(beyond)}, which only Podman can do: its spec must be in {where}"
    renamed = next(
        (node for each in edits for node in each.device_nodes if node.host_path not in ("", node.path)), None
    )
    if beyond and renamed is not None:
        needs = f"needs {', '.join(beyond)}, which only Podman can do"
        return f"{needs}, and {renamed.host_path} as {renamed.path}, which Podman cannot do without root"
    wrong = next((m for m in mounts if not (m.host_path.startswith("/") and m.container_path.startswith("/"))), None)
    return f"{wrong.host_path}:{wrong.container_path}: must be absolute paths" if wrong is not None else ""


def _not_given(problem: str) -> CdiDevice:
    return CdiDevice(Device(problem=problem))


def _beyond_the_api(edits: Iterable[_Edits]) -> list[str]:
    return [name for name in _LEFT_TO_PODMAN if any(msgspec.to_builtins(each).get(name) for each in edits)]


def _mounts(edits: _Edits) -> Iterator[DeviceMount]:
    for node in edits.device_nodes:
        yield node_mount(node.host_path or node.path, node.path, node.permissions)
    for mount in edits.mounts:
        access = tuple(option for option in ("ro", "rw") if option in mount.options)
        yield DeviceMount(mount.host_path, mount.container_path, access)


def node_mount(host_path: str, container_path: str, permissions: str = "rwm") -> DeviceMount:
    """A device node in a container; ``permissions`` as CDI's and Podman's."""
    return DeviceMount(host_path, container_path, () if "w" in permissions else ("ro",))


def _variable(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value
