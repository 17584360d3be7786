"""PersistentVolumes and claims, valid and not (ValidatePersistentVolume, ValidatePersistentVolumeClaim)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ipc.k8s.api.errors import FieldErrors
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.validation.persistent_volumes import (
    validate_persistent_volume_claim_update,
    validate_persistent_volume_update,
)
from supervisor.sources.objects.identity import Origin
from supervisor.sources.objects.kinds import decode_item

ORIGIN = Origin(instance="i", node_name="n", source="file")
NODES = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}


def volume(metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    of = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}, **spec}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v", **(metadata or {})},
        "spec": {key: value for key, value in of.items() if value is not None},
    }


def claim(**spec: Any) -> dict[str, Any]:
    of = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    spec = {key: value for key, value in of.items() if value is not None}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}


def read(document: Mapping[str, Any]) -> Any:
    return decode_item(document, ORIGIN)


def findings(document: Mapping[str, Any]) -> list[str]:
    with pytest.raises(FieldErrors) as refused:
        read(document)
    return [f"{error.path}: {error.message}" for error in refused.value.errors]


def test_a_volume_has_its_defaults_and_no_namespace() -> None:
    found = read(volume())
    assert isinstance(found, PersistentVolume)
    assert found.spec.persistent_volume_reclaim_policy == "Retain"
    assert found.spec.volume_mode == "Filesystem"
    assert found.spec.host_path is not None
    assert found.spec.host_path.type == ""
    assert (found.metadata.namespace, bool(found.metadata.uid)) == ("", True)


def test_a_claim_has_its_defaults_and_a_namespace() -> None:
    found = read({**claim(), "status": {"phase": "Bound"}})
    assert isinstance(found, PersistentVolumeClaim)
    assert (found.spec.volume_mode, found.metadata.namespace, found.status.phase) == ("Filesystem", "default", "")


@pytest.mark.parametrize(
    ("document", "path", "words"),
    [
        (volume(hostPath=None), "spec", "must specify a volume type"),
        (volume(local={"path": "/d"}, nodeAffinity=NODES), "spec.local", "may not be set together with hostPath"),
        (volume(hostPath=None, local={"path": "/d"}), "spec.nodeAffinity", "Local volume requires node affinity"),
        (volume(nodeAffinity={}), "spec.nodeAffinity.required", "must specify required node constraints"),
        (volume(hostPath=None, nfs={"server": "s", "path": "/"}), "spec.nfs", "only hostPath and local: mount it"),
        (volume(hostPath=None, csi={"driver": "d", "volumeHandle": "h"}), "spec.csi", "only hostPath and local"),
        (volume(hostPath=None, rbd={"any": ["thing"]}), "spec.rbd", "its Podman volume with the driver and options"),
        (volume(hostPath={"path": "/a/../b"}), "spec.hostPath.path", "must not contain '..'"),
        (volume(hostPath={"path": "a"}), "spec.hostPath.path", "must be an absolute path"),
        (
            volume(hostPath=None, local={"path": "/d", "fsType": "ext4"}, nodeAffinity=NODES),
            "spec.local.fsType",
            "name a directory",
        ),
        (volume(accessModes=[]), "spec.accessModes", "at least 1 access mode is required"),
        (volume(accessModes=["Never"]), "spec.accessModes[0]", "Unsupported value"),
        (
            volume(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
            "spec.accessModes",
            "may not use ReadWriteOncePod with other access modes",
        ),
        (volume(capacity={}), "spec.capacity", "storage"),
        (volume(capacity={"storage": "1", "cpu": "1"}), "spec.capacity", "storage"),
        (volume(capacity={"storage": "0"}), "spec.capacity[storage]", "must be greater than zero"),
        (volume(capacity={"storage": "much"}), "spec.capacity[storage]", "must be a number"),
        (volume(persistentVolumeReclaimPolicy="Recycle"), "spec.persistentVolumeReclaimPolicy", "Retain"),
        (volume(volumeMode="Block"), "spec.volumeMode", "Filesystem"),
        (volume(mountOptions=["noatime"]), "spec.mountOptions", "neither hostPath nor local"),
        (volume(storageClassName="A B"), "spec.storageClassName", "Invalid value"),
        (volume(claimRef={"name": "c"}), "spec.claimRef.namespace", "Required value"),
        (volume({"namespace": "default"}), "metadata.namespace", "not allowed on this type"),
        (claim(accessModes=None), "spec.accessModes", "at least 1 access mode is required"),
        (claim(resources=None), "spec.resources.requests[storage]", "Required value"),
        (
            claim(resources={"requests": {"storage": "-1"}}),
            "spec.resources.requests[storage]",
            "must be greater than zero",
        ),
        (claim(volumeMode="Block"), "spec.volumeMode", "Filesystem"),
        (claim(dataSource={"kind": "VolumeSnapshot", "name": "s"}), "spec.dataSource", "nothing copies a volume"),
        (
            claim(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "spec.selector.matchExpressions[0].values",
            "must be specified",
        ),
        (
            claim(selector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
            "spec.selector.matchExpressions[0].values",
            "may not be specified",
        ),
    ],
)
def test_what_is_refused(document: Mapping[str, Any], path: str, words: str) -> None:
    (finding,) = [found for found in findings(document) if found.startswith(f"{path}: ")]
    assert words in finding


@pytest.mark.parametrize(
    ("changed", "paths"),
    [
        (volume(capacity={"storage": "2Gi"}, persistentVolumeReclaimPolicy="Delete"), []),
        (volume(hostPath={"path": "/e"}), ["spec.persistentvolumesource"]),
    ],
)
def test_changes_of_a_volume(changed: Mapping[str, Any], paths: list[str]) -> None:
    assert [error.path for error in validate_persistent_volume_update(read(changed), read(volume()))] == paths


@pytest.mark.parametrize(
    ("changed", "paths"),
    [
        (claim(resources={"requests": {"storage": "2Gi"}}), []),
        (claim(storageClassName="other"), ["spec"]),
    ],
)
def test_changes_of_a_claim(changed: Mapping[str, Any], paths: list[str]) -> None:
    assert [error.path for error in validate_persistent_volume_claim_update(read(changed), read(claim()))] == paths
