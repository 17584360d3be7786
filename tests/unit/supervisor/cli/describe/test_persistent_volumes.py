"""Rows and descriptions of volumes and claims, as kubectl shows them."""

from __future__ import annotations

from typing import Any

from ipc.host.clock import rfc3339
from supervisor.cli.describe.persistent_volumes import describe_claim, describe_volume, pods_that_use
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
    volume = _titled(describe_volume(VOLUME, None, NOW))
    assert {key: volume[key] for key in ("Status", "Claim", "Message", "    Path")} == {
        "Status": "Failed",
        "Claim": "ns/c",
        "Message": "why",
        "    Path": "/d",
    }
    claim = _titled(describe_claim(CLAIM, ("p",), None, NOW))
    assert (claim["Requests"], claim["Capacity"], claim["Used By"]) == ("3Gi", "5Gi", "p")


def _titled(text: str) -> dict[str, str]:
    return {title: value.strip() for title, value in (line.split(":", 1) for line in text.splitlines())}


def test_the_users_of_a_claim_are_named() -> None:
    def using(name: str, **source: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"volumes": [{"name": "data", **source}]}}

    pods = [
        using("first", persistentVolumeClaim={"claimName": "c"}),
        using("other", persistentVolumeClaim={"claimName": "d"}),
        using("own", ephemeral={}),
        {"metadata": {"name": "without"}, "spec": {}},
    ]
    assert pods_that_use("c", pods) == ["first"]
    assert pods_that_use("own-data", pods) == ["own"]
    lines = describe_claim(CLAIM, ("first", "second"), None, NOW).splitlines()
    assert [line.split() for line in lines[-2:]] == [["Used", "By:", "first"], ["second"]]


def test_events() -> None:
    assert describe_volume(VOLUME, [], NOW).splitlines()[-1].split() == ["Events:", "<none>"]
    assert "Events" not in describe_volume(VOLUME, None, NOW)
    event = {"metadata": {}, "type": "Normal", "reason": "R", "firstTimestamp": rfc3339(NOW - 5), "message": "m\x1b"}
    told = describe_claim(CLAIM, (), [event], NOW)
    assert told.splitlines()[-1].split()[:3] == ["Normal", "R", "5s"]
    assert "\x1b" not in told
