"""Claims and volumes of the tests' cluster."""

from __future__ import annotations

from typing import Any

from tests.e2e.cluster import Cluster
from tests.e2e.manifests import Json


def pending(cluster: Cluster, name: str, **metadata: Any) -> None:
    """A claim that nothing was found for yet."""
    found = {"name": name, "finalizers": ["kubernetes.io/pvc-protection"], **metadata}
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}},
        "volumeMode": "Filesystem",
    }
    claim = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": found, "spec": wanted}
    cluster.create(claim | {"status": {"phase": "Pending"}})


def bind(cluster: Cluster, name: str, **source: Any) -> None:
    """A volume for the claim, and what the controllers of Kubernetes 1.36 write into both."""
    claim = cluster.do(lambda server: server.store.get("persistentvolumeclaims", "default", name))
    ref = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": claim["metadata"]["uid"]}
    spec: Json = {
        "capacity": {"storage": "1Mi"},
        "accessModes": ["ReadWriteOnce"],
        "claimRef": {**ref, "apiVersion": "v1", "resourceVersion": claim["metadata"]["resourceVersion"]},
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": "Filesystem",
        **source,
    }
    metadata = {"name": f"pv-{name}", "finalizers": ["kubernetes.io/pv-protection"]}
    status = {"phase": "Bound", "lastPhaseTransitionTime": "2026-11-26T10:00:01Z"}
    cluster.create(
        {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": status}
    )
    condition = {"type": "FileSystemResizePending", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    told = {"phase": "Bound", "capacity": {"storage": "1Mi"}, "allocatedResources": {"storage": "2Mi"}}
    spec = {**claim["spec"], "volumeName": f"pv-{name}"}
    bound = {**claim, "spec": spec, "status": {**told, "conditions": [condition]}}
    cluster.do(lambda server: server.store.update(bound))
