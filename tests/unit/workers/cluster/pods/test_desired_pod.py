"""A pod of the server, as this node takes or refuses it; and the mirror of a static one."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.pod import Pod
from tests.unit.workers.cluster.pods.pods import known
from workers.cluster.pods.desired_pod import MAX_AT_ONCE_BYTES, Refusal, decoded, decoded_at_once, desired_pod
from workers.cluster.pods.known_pod import KnownPod, answered_pod, decode_known_pod
from workers.cluster.pods.mirror_pod import is_of_earlier_life, mirror_name, mirror_pod, mirrors


def with_spec(**spec: Any) -> KnownPod:
    pod = known()
    value = {**msgspec.json.decode(pod.spec), **spec}
    return msgspec.structs.replace(pod, spec=msgspec.Raw(json.dumps(value).encode()))


def test_a_pod_keeps_what_the_server_gave_it() -> None:
    pod = desired_pod(known(generation=4, ownerReferences=[{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "y"}]))
    assert isinstance(pod, Pod)
    assert (pod.metadata.uid, pod.metadata.generation) == ("u1", 4)
    assert pod.metadata.owner_references[0].name == "x"
    assert pod.metadata.annotations["kubernetes.io/config.source"] == "api"
    assert pod.status.phase == "Pending"


def test_a_field_of_a_newer_server_is_dropped() -> None:
    pod = desired_pod(with_spec(fromTheFuture={"a": 1}))
    assert isinstance(pod, Pod)


@pytest.mark.parametrize(
    ("spec", "is_plain"),
    [
        ({}, True),
        ({"volumes": [{"name": "v", "emptyDir": {"sizeLimit": 5}}], "hostUsers": False}, True),
        ({"containers": [{"name": "main", "image": "x", "env": [{"name": "A", "value": "\u00e9"}]}]}, True),
        ({"containers": [{"name": "main", "image": "x", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}, True),
        ({"fromTheFuture": 1}, False),
        ({"volumes": None}, False),
        ({"containers": [{"name": "main", "image": "x", "args": ["a"] * MAX_AT_ONCE_BYTES}]}, False),
    ],
)
def test_a_pod_is_decoded_at_once_or_field_by_field_and_is_the_same(spec: dict[str, Any], *, is_plain: bool) -> None:
    """The walk in Python takes thirty times as long, and knows what to do with what is odd."""
    pod = with_spec(**spec)
    at_once = decoded_at_once(pod)
    assert (at_once is not None) is is_plain
    if at_once is not None:
        assert at_once == decoded(pod)


HEAD = b'{"metadata":{"name":"web","namespace":"default","uid":"u1"},'


@pytest.mark.parametrize(
    "rest",
    [
        b'"spec":null}',
        b'"spec":7}',
        b'"spec":[]}',
        b'"spec":{"nodeName":"\xff"}}',
        b'"spec":{},"status":{"message":"\xff"}}',
        b'"spec":' + b"[" * 9000 + b"}",
        b"}",
    ],
)
def test_what_is_no_pod_cannot_be_read(rest: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_known_pod(HEAD + rest)
    with pytest.raises(ValueError, match=r".+"):
        answered_pod(HEAD + rest, "u1")


@pytest.mark.parametrize(
    "status",
    [
        b"null",
        b"7",
        b"[]",
        b'{"phase":7}',
        b'{"conditions":[null]}',
        b'{"conditions":[{"status":"True"}]}',
        b'{"conditions":{"type":"Ready"}}',
        b'{"containerStatuses":[{"state":{}}]}',
        b'{"containerStatuses":[{"name":"main","state":[]}]}',
        b'{"containerStatuses":[{"name":"main","state":{"terminated":7}}]}',
        b'{"reason":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_a_status_of_other_types_counts_as_none(status: bytes) -> None:
    pod = msgspec.structs.replace(known(), status=msgspec.Raw(status))
    assert pod.status_value() == {}
    assert isinstance(desired_pod(pod), Pod)


def test_nulls_of_a_status_are_what_is_not_set() -> None:
    pod = msgspec.structs.replace(known(), status=msgspec.Raw(b'{"phase":"Running","conditions":null,"new":null}'))
    assert pod.status_value() == {"phase": "Running"}


def test_a_spec_that_is_nested_too_deeply_is_refused() -> None:
    deep = b'{"containers":[],"volumes":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert isinstance(desired_pod(msgspec.structs.replace(known(), spec=msgspec.Raw(deep))), Refusal)


def test_text_that_is_none_is_refused_either_way() -> None:
    container = b'{"containers": [{"name": "\\ud800", "image": "x"}]}'
    pod = msgspec.structs.replace(known(), spec=msgspec.Raw(container))
    assert decoded_at_once(pod) is None


def test_what_is_known_and_not_done_is_refused_in_words() -> None:
    refusal = desired_pod(with_spec(volumes=[{"name": "v", "awsElasticBlockStore": {"volumeID": "x"}}]))
    assert isinstance(refusal, Refusal)
    assert refusal.message.startswith("spec.volumes[0].awsElasticBlockStore: not supported: ")
    broken = desired_pod(with_spec(containers="none"))
    assert isinstance(broken, Refusal)
    assert broken.message == "spec.containers: expected array, got string"


def test_a_pod_for_another_system_is_left_to_admission() -> None:
    pod = desired_pod(with_spec(os={"name": "windows"}))
    assert isinstance(pod, Pod)
    assert pod.spec.os is not None


def test_what_is_for_windows_alone_means_nothing() -> None:
    context = {"windowsOptions": {"runAsUserName": "ContainerUser"}}
    container = {"name": "main", "image": "busybox", "securityContext": context}
    assert isinstance(desired_pod(with_spec(securityContext=context, containers=[container])), Pod)


def test_a_version_differs_by_what_is_meant() -> None:
    pod = known(1, labels={"a": "b"})
    assert pod.means_the_same(known(2, labels={"a": "b"}, status={"phase": "Running"}))
    assert not pod.means_the_same(known(2, labels={"a": "c"}))
    assert not pod.means_the_same(known(2, labels={"a": "b"}, deletionTimestamp="2026-01-01T00:00:00Z"))


def test_versions_compare_as_numbers() -> None:
    assert known(9).is_older_than(known(10))
    assert not known(10).is_older_than(known(9))
    assert not known(resourceVersion="x").is_older_than(known(9))


def test_a_mirror_is_its_pod_owned_by_the_node() -> None:
    pod = desired_pod(known(annotations={"kubernetes.io/config.hash": "h"}))
    assert isinstance(pod, Pod)
    value = json.loads(mirror_pod(pod, "N1", "node-uid"))
    assert value["metadata"]["name"] == "web-n1" == mirror_name("web", "N1")
    assert value["metadata"]["annotations"]["kubernetes.io/config.mirror"] == "h"
    (owner,) = value["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": "N1", "uid": "node-uid", "controller": True}
    assert value["spec"]["nodeName"] == "N1"
    assert value["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]
    made = known(annotations=value["metadata"]["annotations"])
    assert made.is_mirror
    assert mirrors(made, pod)
    assert not mirrors(known(annotations={"kubernetes.io/config.mirror": "other"}), pod)


@pytest.mark.parametrize(
    ("mirror", "now", "earlier"),
    [
        ("Running", "Failed", False),
        ("Pending", "Succeeded", False),
        ("Failed", "Failed", False),
        ("Succeeded", "Running", True),
        ("Failed", "Pending", True),
        ("Failed", "Succeeded", True),
    ],
)
def test_a_mirror_that_ended_otherwise_is_of_an_earlier_life(mirror: str, now: str, earlier: bool) -> None:
    assert is_of_earlier_life(known(status={"phase": mirror}), now) is earlier
