"""Overhead of RuntimeClasses, in the pods that name them."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.k8s.api.decode import decode_pod, decode_runtime_class
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import RuntimeClass
from ipc.k8s.api.validation.classes import validate_runtime_class, validate_runtime_class_update
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.podobjects.config_objects import ConfigObjects, ObjectKind, ObjectRef, referenced_objects
from ipc.k8s.podresources.pod_requests import pod_requests
from supervisor.sources.objects.runtime_class import runtime_classes, with_overhead
from workers.kubecontainer.config_error import ConfigError
from workers.kuberuntime.runtime_class import find_oci_runtime
from workers.sync.pod_snapshot import PodSnapshot


def runtime_class(name: str = "vm", handler: str = "kata", **fields: Any) -> RuntimeClass:
    api = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    return decode_runtime_class({**api, "metadata": {"name": name}, "handler": handler, **fields})


def pod(**spec: Any) -> Pod:
    asks = {"requests": {"cpu": "100m"}}
    body = {"containers": [{"name": "c", "image": "x", "resources": asks}], **spec}
    return decode_pod({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": body})


OVERHEAD = {"cpu": "250m", "memory": "120Mi"}
CLASSES = runtime_classes([runtime_class(overhead={"podFixed": OVERHEAD}), runtime_class("plain", "runc")])


def test_a_pod_has_the_overhead_of_its_class() -> None:
    found = with_overhead(pod(runtimeClassName="vm"), None, CLASSES)
    assert found.spec.overhead == OVERHEAD
    assert pod_requests(found) == {"cpu": 350, "memory": 120 << 20}


@pytest.mark.parametrize(
    ("stated", "overhead"),
    [
        (pod(), {}),
        (pod(runtimeClassName="plain"), {}),
        (pod(runtimeClassName="none"), {}),
        (pod(runtimeClassName="vm", overhead={"cpu": "1m"}), {"cpu": "1m"}),
    ],
)
def test_others_have_their_own(stated: Pod, overhead: dict[str, str]) -> None:
    assert with_overhead(stated, None, CLASSES).spec.overhead == overhead


def test_a_class_that_cannot_be_read_takes_no_overhead_away() -> None:
    existing = with_overhead(pod(runtimeClassName="vm"), None, CLASSES)
    assert with_overhead(pod(runtimeClassName="vm"), existing, {}).spec.overhead == OVERHEAD
    assert with_overhead(pod(runtimeClassName="other"), existing, {}).spec.overhead == {}


def test_what_a_class_may_say() -> None:
    assert validate_runtime_class(runtime_class(scheduling={"nodeSelector": {"a": "b"}})) == ()
    wrong = runtime_class(handler="Not_A_Label", overhead={"podFixed": {"cpu": "-1"}})
    assert [error.path for error in validate_runtime_class(wrong)] == ["handler", "overhead.podFixed[cpu]"]
    assert [error.path for error in validate_runtime_class_update(runtime_class(), runtime_class(handler="runc"))] == [
        "handler"
    ]


def test_the_runtime_of_a_class_is_the_configurations() -> None:
    of = pod(runtimeClassName="vm")
    assert ObjectRef(ObjectKind.RUNTIME_CLASS, "vm") in referenced_objects(of)
    assert not any(ref.kind is ObjectKind.RUNTIME_CLASS for ref in referenced_objects(pod()))
    there, status = ConfigObjects(runtime_classes=CLASSES), RuntimePodStatus(uid="u")
    assert find_oci_runtime(PodSnapshot(pod=of, objects=there, status=status), {"kata": "/bin/kata"}) == "/bin/kata"
    assert find_oci_runtime(PodSnapshot(pod=pod(), objects=there, status=status), {}) == ""
    unread = ConfigObjects(unknown=frozenset({ObjectRef(ObjectKind.RUNTIME_CLASS, "vm")}))
    for objects, why in (
        (there, 'no runtime for "kata" is configured'),
        (ConfigObjects(), 'RuntimeClass.node.k8s.io "vm" not found'),
        (unread, 'RuntimeClass "vm" is not known yet'),
    ):
        with pytest.raises(ConfigError) as raised:
            find_oci_runtime(PodSnapshot(pod=of, objects=objects, status=status), {})
        assert raised.value.message == why
