"""Rows of volumes and claims, as kubectl shows them."""

from __future__ import annotations

from typing import Any

from ipc.host.clock import rfc3339
from workers.api_server.printers.persistent_volumes import claim_row, volume_row

NOW = 1_800_000_000.0
AGED = {"creationTimestamp": rfc3339(NOW - 120)}
VOLUME: dict[str, Any] = {
    "metadata": {"name": "v", **AGED},
    "spec": {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "disk",
        "volumeMode": "Filesystem",
        "hostPath": {"path": "/d", "type": "Directory"},
        "claimRef": {"namespace": "ns", "name": "c"},
    },
    "status": {"phase": "Failed", "reason": "VolumeFailedDelete", "message": "why"},
}
CLAIM: dict[str, Any] = {
    "metadata": {"name": "c", "namespace": "ns", **AGED},
    "spec": {"volumeName": "v", "storageClassName": "disk", "resources": {"requests": {"storage": "3Gi"}}},
    "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOncePod"]},
}


def test_the_row_of_a_volume() -> None:
    row = ("v", "5Gi", "RWO,ROX", "Retain", "Failed", "ns/c", "disk", "<unset>", "VolumeFailedDelete", "2m")
    assert volume_row(VOLUME, NOW) == (*row, "Filesystem")


def test_the_row_of_a_claim() -> None:
    assert claim_row(CLAIM, NOW) == ("c", "Bound", "v", "5Gi", "RWOP", "disk", "<unset>", "2m", "<unset>")
    pending = {"metadata": {"name": "c"}, "spec": {}, "status": {"phase": "Pending"}}
    assert claim_row(pending, NOW)[1:7] == ("Pending", "", "", "", "", "<unset>")
    leaving = {**CLAIM, "metadata": {**CLAIM["metadata"], "deletionTimestamp": rfc3339(NOW)}}
    assert claim_row(leaving, NOW)[1] == "Terminating"
