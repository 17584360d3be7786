"""Words of a status about mounts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.container import VolumeMount
from supervisor.status.containers import volume_mount_statuses
from tests.support.pods import container


@pytest.mark.parametrize(
    ("fields", "read_only", "recursive"),
    [
        ({}, False, None),
        ({"read_only": True}, True, "Disabled"),
        ({"read_only": True, "recursive_read_only": "Disabled"}, True, "Disabled"),
        ({"read_only": True, "recursive_read_only": "IfPossible"}, True, "Enabled"),
        ({"read_only": True, "recursive_read_only": "Enabled", "mount_propagation": "None"}, True, "Enabled"),
    ],
)
def test_a_mount(fields: dict[str, Any], read_only: bool, recursive: str | None) -> None:
    of = container("main", volume_mounts=(VolumeMount(name="data", mount_path="/data", **fields),))
    (told,) = volume_mount_statuses(of, {"other": "quay.io/a/model@sha256:abc"})
    assert told.volume_status is None
    assert (told.name, told.mount_path, told.read_only, told.recursive_read_only) == (
        "data",
        "/data",
        read_only,
        recursive,
    )


def test_the_image_of_a_volume_is_told_of_each_of_its_mounts() -> None:
    mounts = (VolumeMount(name="model", mount_path="/a"), VolumeMount(name="model", mount_path="/b", sub_path="c"))
    told = volume_mount_statuses(container("main", volume_mounts=mounts), {"model": "quay.io/a/model@sha256:abc"})
    assert [msgspec.to_builtins(each)["volumeStatus"] for each in told] == [
        {"image": {"imageRef": "quay.io/a/model@sha256:abc"}}
    ] * 2
