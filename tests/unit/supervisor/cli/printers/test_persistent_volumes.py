"""Rows and descriptions of volumes and claims, as kubectl shows them."""

from __future__ import annotations

from typing import Any

from ipc.host.clock import rfc3339
from supervisor.cli.printers.persistent_volumes import describe_claim, describe_events, describe_volume
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


def test_descriptions() -> None:
    volume = dict(line.split(":", 1) for line in describe_volume(VOLUME).splitlines())
    assert {key: volume[key].strip() for key in ("Status", "Claim", "Message", "    Path")} == {
        "Status": "Failed",
        "Claim": "ns/c",
        "Message": "why",
        "    Path": "/d",
    }
    claim = dict(line.split(":", 1) for line in describe_claim(CLAIM).splitlines())
    assert (claim["Requests"].strip(), claim["Capacity"].strip()) == ("3Gi", "5Gi")


def test_events() -> None:
    assert describe_events([], NOW) == "Events:  <none>\n"
    event = {"type": "Normal", "reason": "R", "lastTimestamp": rfc3339(NOW - 5), "message": "m\x1b"}
    told = describe_events([event], NOW)
    assert told.splitlines()[-1].split()[:3] == ["Normal", "R", "5s"]
    assert "\x1b" not in told
