"""Words of a status about mounts."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.api.v1.container import VolumeMount
from supervisor.status.volume_mounts import volume_mount_statuses
from tests.harness.pods import container


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
    (told,) = volume_mount_statuses(of)
    assert (told.name, told.mount_path, told.read_only, told.recursive_read_only) == (
        "data",
        "/data",
        read_only,
        recursive,
    )
