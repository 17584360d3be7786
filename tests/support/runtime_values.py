"""Answers of a runtime, for the tests of observation."""

from __future__ import annotations

from typing import Any

from workers.kubecontainer import labels
from workers.kubecontainer.runtime import InspectedContainer, ListedContainer, ListedPod

INSTANCE = "one"
UID = "0c3ad6a8-0000-4000-8000-000000000001"


def own_labels(uid: str = UID, **more: str) -> dict[str, str]:
    """Labels of a pod named after its uid."""
    return {
        labels.INSTANCE: INSTANCE,
        labels.POD_UID: uid,
        labels.POD_NAME: f"pod-{uid[:4]}",
        labels.POD_NAMESPACE: "default",
        **more,
    }


def container_labels(name: str, attempt: int = 0, uid: str = UID, **more: str) -> dict[str, str]:
    return own_labels(uid, **{labels.CONTAINER_NAME: name, labels.ATTEMPT: str(attempt), **more})


def inspected(id: str, **fields: Any) -> InspectedContainer:
    """A running container of the pod `p1`."""
    known: dict[str, Any] = {
        "name": f"name-of-{id}",
        "pod_id": "p1",
        "is_infra": False,
        "state": "running",
        "pid": 77,
        "conmon_pid": 76,
        "exit_code": 0,
        "oom_killed": False,
        "error": "",
        "created_at": 100.25,
        "started_at": 101.5,
        "finished_at": 0.0,
        "image": "localhost/x:latest",
        "image_id": "i1",
        "labels": container_labels("main"),
        "ips": (),
        "log_path": "",
    }
    return InspectedContainer(id=id, **{**known, **fields})


def listed(id: str, **fields: Any) -> ListedContainer:
    """The same container in a list."""
    known: dict[str, Any] = {
        "name": f"name-of-{id}",
        "pod_id": "p1",
        "pod_name": "pod-one",
        "is_infra": False,
        "state": "running",
        "pid": 77,
        "exit_code": 0,
        "created_at": 100.25,
        "started_at": 101.0,
        "exited_at": 0.0,
        "image": "localhost/x:latest",
        "image_id": "i1",
        "labels": container_labels("main"),
    }
    return ListedContainer(id=id, **{**known, **fields})


def infra(id: str = "infra", **fields: Any) -> InspectedContainer:
    return inspected(id, **{"is_infra": True, "labels": own_labels(), **fields})


def listed_pod(id: str = "p1", infra_id: str = "infra", **fields: Any) -> ListedPod:
    known: dict[str, Any] = {"name": "pod-one", "labels": own_labels(), "created_at": 100.0}
    return ListedPod(id=id, infra_id=infra_id, **{**known, **fields})
