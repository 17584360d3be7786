"""The devices that a container was given, as fields of libpod's SpecGenerator. Pure.

A device node is a bind mount, which is all that a rootless Podman makes of one: so a privileged container gets it, too,
of which Podman drops ``devices``, and a node may have another name in the container than on the host, which the OCI
runtime does not manage for a device that Podman has resolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ipc.k8s.api.v1.container import Container
from ipc.k8s.podresources.devices import DeviceEdits, DeviceMount, Devices
from ipc.k8s.podresources.pod_requests import amount
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.runtime import OciMount

_IS_DEVICE: Final = "dev"
"""Option of a mount: device nodes below it may be opened."""


def device_edits(container: Container, given: Mapping[str, tuple[str, ...]], known: Devices) -> DeviceEdits:
    """Changes that all devices of the container ask for together. Raises ConfigError for one that is not known or not
    there, and if the container was not given as many as it asks for."""
    limits = container.resources.limits
    for resource in known.keys() & limits.keys():
        if len(given.get(resource, ())) != amount(limits, resource):
            raise ConfigError(f"no {resource} is left for {container.name}")
    found = [_edits(known, resource, name) for resource, names in sorted(given.items()) for name in names]
    mounts = {mount.container_path: mount for edits in found for mount in edits.mounts}
    return DeviceEdits(
        env={name: value for edits in found for name, value in edits.env.items()},
        mounts=tuple(mounts.values()),
        cdi_names=tuple(name for edits in found for name in edits.cdi_names),
    )


def device_mounts(edits: DeviceEdits) -> Iterator[OciMount]:
    """Entries of ``mounts``."""
    return map(_mount, edits.mounts)


def device_names(edits: DeviceEdits) -> list[Mapping[str, str]]:
    """Entries of ``devices``: Podman takes a CDI name where it takes a path."""
    return [{"path": name} for name in edits.cdi_names]


def with_device_env(environment: Mapping[str, str], edits: DeviceEdits) -> dict[str, str]:
    """A device's variables count more, as where the container runtime sets them."""
    return {**environment, **edits.env}


def _edits(known: Devices, resource: str, name: str) -> DeviceEdits:
    device = known.get(resource, {}).get(name)
    if device is None:
        raise ConfigError(f"device {name} of {resource} is no longer configured")
    if device.problem:  # without its edits the container would run, and have nothing of the device
        raise ConfigError(f"device {name} of {resource} is not there: {device.problem}")
    return device.edits


def _mount(mount: DeviceMount) -> OciMount:
    options = mount.options or ("rw",)
    return {
        "type": "bind",
        "source": mount.host_path,
        "destination": mount.container_path,
        "options": ["rbind", "rslave", _IS_DEVICE, *options],
    }
