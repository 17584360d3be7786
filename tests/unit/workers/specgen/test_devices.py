"""Devices in a container's specification."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.podresources.devices import Device, DeviceEdits, DeviceMount, Devices
from tests.support.pods import container, pod
from tests.unit.workers.specgen.test_spec import PLACE
from workers.kubecontainer.config_error import ConfigError
from workers.specgen.spec import container_spec

GPU = "example.com/gpu"
KNOWN: Devices = {
    GPU: {
        "g0": Device(
            edits=DeviceEdits(
                env={"WHICH": "g0", "A": "device's"},
                mounts=(DeviceMount("/dev/zero", "/dev/g0"), DeviceMount("/usr/lib/g", "/lib/g", ("ro",))),
            )
        ),
        "g1": Device(
            edits=DeviceEdits(cdi_names=("example.com/gpu=1",), mounts=(DeviceMount("/usr/lib/g", "/lib/g"),))
        ),
        "gone": Device(problem="no CDI spec of cdiSpecDirs has it"),
        "closed": Device(
            edits=DeviceEdits(mounts=(DeviceMount("/dev/g", "/dev/g"),)), problem="this user may not open it"
        ),
    }
}


def spec_with(*names: str, number: int | None = None) -> dict[str, Any]:
    asks = {"limits": {GPU: str(len(names) if number is None else number)}}
    of = pod(container("main", resources=msgspec.convert(asks, container("x").resources.__class__)))
    place = msgspec.structs.replace(
        PLACE,
        environment={"A": "own", "B": "own"},
        known_devices=KNOWN,
        devices={GPU: names} if names else {},
    )
    return container_spec(of, of.spec.containers[0], place)


def test_a_device_node_is_a_mount_and_its_variables_count_more() -> None:
    found = spec_with("g0")
    assert found["env"] == {"A": "device's", "B": "own", "WHICH": "g0"}
    options = ["rbind", "rslave", "dev"]
    assert found["mounts"][-2:] == [
        {"type": "bind", "source": "/dev/zero", "destination": "/dev/g0", "options": [*options, "rw"]},
        {"type": "bind", "source": "/usr/lib/g", "destination": "/lib/g", "options": [*options, "ro"]},
    ]
    assert "devices" not in found


def test_podman_is_told_the_names_that_are_left_to_it_and_one_place_is_mounted_once() -> None:
    found = spec_with("g0", "g1")
    assert found["devices"] == [{"path": "example.com/gpu=1"}]
    assert [mount["destination"] for mount in found["mounts"]].count("/lib/g") == 1


@pytest.mark.parametrize(
    ("names", "number", "why"),
    [
        (("g7",), 1, "device g7 of example.com/gpu is no longer configured"),
        (("gone",), 1, "device gone of example.com/gpu is not there: no CDI spec of cdiSpecDirs has it"),
        (("g0", "closed"), 2, "device closed of example.com/gpu is not there: this user may not open it"),
        ((), 1, "no example.com/gpu is left for main"),
        (("g0",), 2, "no example.com/gpu is left for main"),
    ],
)
def test_a_container_without_its_devices_is_not_made(names: tuple[str, ...], number: int, why: str) -> None:
    with pytest.raises(ConfigError) as raised:
        spec_with(*names, number=number)
    assert raised.value.message == why
