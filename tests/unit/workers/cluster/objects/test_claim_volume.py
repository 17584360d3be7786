"""Volumes behind claims, as a server of Kubernetes 1.36 writes both, and the words for those that cannot be mounted."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.decode import decode_server_object
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import RuntimeClass
from ipc.k8s.api.v1.volume import EphemeralVolumeSource, Volume
from ipc.k8s.podobjects.pod_claims import claim_name
from tests.support.pods import container, pod
from workers.cluster.objects.claim_volume import claim_problem, owner_problem, pod_claim

MANAGED = [
    {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-26T10:00:02Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:phase": {}}},
        "subresource": "status",
    }
]
CLAIM: dict[str, Any] = {
    "kind": "PersistentVolumeClaim",
    "apiVersion": "v1",
    "metadata": {
        "name": "data",
        "namespace": "default",
        "uid": "6f0c4f4e-9a0f-4b7e-8c35-8a4a2b3c1d10",
        "resourceVersion": "812",
        "creationTimestamp": "2026-11-26T10:00:00Z",
        "annotations": {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"},
        "finalizers": ["kubernetes.io/pvc-protection"],
        "managedFields": MANAGED,
    },
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": "pv-1",
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
    },
    "status": {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "allocatedResources": {"storage": "2Gi"},
        "allocatedResourceStatuses": {"storage": "ControllerResizeInProgress"},
        "conditions": [
            {
                "type": "Resizing",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2026-11-26T10:00:01Z",
            },
            {"type": "FileSystemResizePending", "status": "True", "lastProbeTime": None, "lastTransitionTime": None},
        ],
        "currentVolumeAttributesClassName": "gold",
        "modifyVolumeStatus": {"targetVolumeAttributesClassName": "silver", "status": "Pending"},
    },
}
VOLUME: dict[str, Any] = {
    "kind": "PersistentVolume",
    "apiVersion": "v1",
    "metadata": {
        "name": "pv-1",
        "uid": "0a7c19f0-71b0-4f41-a1ad-5f2c53d8a4ee",
        "resourceVersion": "811",
        "creationTimestamp": "2026-11-26T09:59:00Z",
        "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
        "finalizers": ["kubernetes.io/pv-protection"],
        "managedFields": MANAGED,
    },
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "namespace": "default",
            "name": "data",
            "uid": "6f0c4f4e-9a0f-4b7e-8c35-8a4a2b3c1d10",
            "apiVersion": "v1",
            "resourceVersion": "809",
        },
        "persistentVolumeReclaimPolicy": "Delete",
        "storageClassName": "fast",
        "volumeMode": "Filesystem",
    },
    "status": {"phase": "Bound", "lastPhaseTransitionTime": "2026-11-26T10:00:01Z"},
}
ON_NODE_A = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}]}
        ]
    }
}
CSI = {
    "driver": "ebs.csi.aws.com",
    "volumeHandle": "vol-0123456789abcdef0",
    "fsType": "ext4",
    "volumeAttributes": {"storage.kubernetes.io/csiProvisionerIdentity": "1700000000000-8081-ebs.csi.aws.com"},
    "nodeStageSecretRef": {"name": "s", "namespace": "kube-system"},
}


def claim(**changes: Any) -> PersistentVolumeClaim:
    made = {**CLAIM, **{part: {**CLAIM[part], **changes[part]} for part in changes}}
    return decode_server_object(json.dumps(made).encode(), PersistentVolumeClaim)


def volume(**spec: Any) -> PersistentVolume:
    made = {**VOLUME, "spec": {**VOLUME["spec"], **spec}}
    return decode_server_object(json.dumps(made).encode(), PersistentVolume)


def test_a_host_path_and_a_local_volume() -> None:
    found = pod_claim(claim(), volume(hostPath={"path": "/srv/data", "type": ""}))
    assert (found.problem, found.volume) == ("", "pv-1")
    assert found.host_path is not None
    assert found.host_path.path == "/srv/data"
    assert found.nodes is None
    found = pod_claim(claim(), volume(local={"path": "/srv/disk"}, nodeAffinity=ON_NODE_A))
    assert (found.problem, found.local_path) == ("", "/srv/disk")
    assert found.nodes is not None
    assert not found.is_for_one_pod
    single = claim(spec={"accessModes": ["ReadWriteOncePod"]})
    assert pod_claim(single, volume(local={"path": "/srv/disk"})).is_for_one_pod


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"csi": CSI}, "csi"),
        ({"nfs": {"server": "nfs.example", "path": "/export"}}, "nfs"),
        ({"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.x", "lun": 0}}, "iscsi"),
        ({"storageos": {"volumeName": "x"}}, "storageos"),
        ({"fromTheFuture": {"a": 1}}, "unknown"),
    ],
)
def test_every_other_kind_is_refused_by_its_name(source: dict[str, Any], kind: str) -> None:
    found = pod_claim(claim(), volume(**source))
    words = f'PersistentVolume "pv-1" is of kind {kind}: a host without root mounts only hostPath and local'
    assert found.problem == f"error processing PVC default/data: {words}"
    assert (found.podman_volume, found.host_path, found.local_path) == ("", None, "")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"claimRef": None}, "it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"),
        ({"claimRef": {"name": "data", "uid": "other"}}, "its pv.Spec.ClaimRef.UID other does not point to claim.UID"),
        ({"volumeMode": "Block"}, "has volumeMode Block, but is specified in volumeMounts"),
        ({"mountOptions": ["ro"]}, "Mount options are not supported by the provided plugin"),
    ],
)
def test_a_volume_that_is_not_the_claims(spec: dict[str, Any], words: str) -> None:
    assert words in pod_claim(claim(), volume(hostPath={"path": "/srv"}, **spec)).problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"status": {"phase": "Pending", "conditions": None}}, "PVC is not bound"),
        ({"status": {"phase": "Lost"}}, "PVC is not bound"),
        ({"spec": {"volumeName": ""}}, "PVC has empty pvc.Spec.VolumeName"),
        ({"metadata": {"deletionTimestamp": "2026-11-26T11:00:00Z"}}, ""),
        ({"metadata": {"deletionTimestamp": "2026-11-26T11:00:00Z", "finalizers": []}}, "PVC is being deleted"),
    ],
)
def test_a_claim_that_is_not_bound(changes: dict[str, Any], problem: str) -> None:
    assert claim_problem(claim(**changes)) == problem


def cluster_pod(uid: str = "u") -> Pod:
    found = pod(container("main"))
    metadata = ObjectMeta(name="web", namespace="default", uid=uid, annotations={CONFIG_SOURCE: API_SOURCE})
    return msgspec.structs.replace(found, metadata=metadata)


def test_an_ephemeral_volume_is_the_claim_that_the_pod_owns() -> None:
    wanted = Volume(name="scratch", ephemeral=EphemeralVolumeSource())
    assert claim_name(cluster_pod(), wanted) == "web-scratch"
    assert claim_name(pod(container("main")), wanted) == "", "of a file's pod it is no claim"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u", "controller": True}
    owned = claim(metadata={"name": "web-scratch", "ownerReferences": [owner]})
    assert owner_problem(cluster_pod(), owned, wanted) == ""
    words = "PVC default/web-scratch was not created for pod default/web (pod is not owner)"
    assert owner_problem(cluster_pod("another"), owned, wanted) == words


def test_what_a_newer_server_adds_to_other_objects_is_dropped() -> None:
    """A list's items say neither kind nor apiVersion."""
    metadata = {"name": "a", "creationTimestamp": None, "managedFields": MANAGED}
    text = json.dumps({"metadata": metadata, "data": {"k": "v"}, "fromTheFuture": 1}).encode()
    assert decode_server_object(text, ConfigMap).data == {"k": "v"}
    text = json.dumps({"metadata": metadata, "data": {"k": "dg=="}, "immutable": None, "other": [1]}).encode()
    found = decode_server_object(text, Secret)
    assert (found.data, found.metadata.managed_fields) == ({"k": b"v"}, ())
    text = json.dumps({"metadata": metadata, "handler": "crun", "scheduling": {"nodeSelector": None}, "x": {}}).encode()
    assert decode_server_object(text, RuntimeClass).handler == "crun"


@pytest.mark.parametrize("struct", [ConfigMap, Secret, RuntimeClass, PersistentVolume, PersistentVolumeClaim])
@pytest.mark.parametrize("wrong", [{"kind": "Pod"}, {"apiVersion": "v9"}, {"kind": 7}])
def test_an_object_of_another_kind_is_none(struct: type[msgspec.Struct], wrong: dict[str, object]) -> None:
    """The master keeps objects by their kinds."""
    text = json.dumps({"metadata": {"name": "a"}, "spec": {}, "handler": "crun", **wrong}).encode()
    with pytest.raises(ValueError, match=next(iter(wrong))):
        decode_server_object(text, struct)


def test_a_secret_that_cannot_be_read_is_not_repeated() -> None:
    text = json.dumps({"metadata": {"name": "a"}, "data": {"k": "not base64!"}}).encode()
    with pytest.raises(ValueError, match="data") as found:
        decode_server_object(text, Secret)
    assert "not base64!" not in str(found.value)
