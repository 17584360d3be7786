"""Manifests to pods: kinds, all or nothing per document, errors with file, document, field and pod; identity."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.annotations import CONFIG_HASH, CONFIG_SEEN, CONFIG_SOURCE
from ipc.k8s.api.decode import MAX_FIELD_ERRORS, decode_pod, encode_pod
from supervisor.protocol.manifests import DecodedFile, ManifestErrorKind
from supervisor.sources.objects.decode import MAX_ERRORS_PER_FILE, MAX_OBJECTS_PER_FILE, decode_manifest
from supervisor.sources.objects.identity import identify, pod_uid
from supervisor.sources.objects.kinds import MAX_ENCODED_POD_BYTES
from tests.support.manifests import ORIGIN, manifest, pod, text

MIB = 1 << 20


def decode(data: bytes) -> DecodedFile:
    return decode_manifest(data, "web.yaml", ORIGIN)


def names(decoded: DecodedFile) -> list[str]:
    return [item.pod.metadata.name for item in decoded.pods]


def messages(decoded: DecodedFile) -> list[str]:
    return [str(error) for error in decoded.errors]


def listed(kind: str, *items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "items": list(items)}


def untyped(name: str) -> dict[str, Any]:
    return {key: value for key, value in manifest(name).items() if key not in ("apiVersion", "kind")}


# --- kinds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("documents", "pods"),
    [
        ([manifest("a")], ["a"]),
        ([manifest("a"), manifest("b")], ["a", "b"]),
        ([listed("List", manifest("a"), manifest("b"))], ["a", "b"]),
        ([listed("PodList", manifest("a"), untyped("b"))], ["a", "b"]),
        ([listed("PodList"), manifest("c")], ["c"]),
        ([{**listed("List", manifest("a")), "metadata": {"resourceVersion": ""}}], ["a"]),
    ],
)
def test_pods_and_lists_of_pods(documents: list[dict[str, Any]], pods: list[str]) -> None:
    for data in (text(*documents), "\n".join(map(json.dumps, documents)).encode()):
        decoded = decode(data)
        assert decoded.errors == ()
        assert names(decoded) == pods


def test_yaml_as_people_write_it() -> None:
    decoded = decode(
        b"""
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: &labels {app: web, version: "1.0"}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: busybox
    command: [sh, -c, 'sleep 1h']
    env:
    - {name: DEBUG, value: "on"}
---
# the other
apiVersion: v1
kind: Pod
metadata: {name: other, labels: *unknown}
"""
    )
    assert names(decoded) == ["web"]
    assert decoded.pods[0].pod.metadata.labels == {"app": "web", "version": "1.0"}
    assert messages(decoded) == ["web.yaml: document 2: metadata.labels: line 19: unknown alias"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "document 1: kind: Deployment is not supported here"),
        (
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}},
            'document 1: kind: Service "web" is not supported here; a manifest holds Pod, ConfigMap, Secret, Priority',
        ),
        (
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "A piece\nof text"}},
            "document 1: kind: Service is not supported here",
        ),
        ({"apiVersion": "v1", "kind": "X" * 999}, "document 1: kind: " + "X" * 64 + " is not supported"),
        ({"apiVersion": "v1", "kind": 3}, "document 1: kind:"),
        ({"apiVersion": "v2", "kind": "Pod"}, "document 1: apiVersion: "),
        ({"kind": "Pod"}, "document 1: apiVersion: "),
        ({"apiVersion": "v1"}, "document 1: kind: "),
        ({"kind": "List", "items": []}, "document 1: apiVersion: must be v1"),
        (listed("List") | {"items": {}}, "document 1: items: expected array"),
        (listed("List") | {"item": []}, "document 1: item: unknown field"),
        (listed("List", untyped("a")), "document 1: items[0].apiVersion: "),
        (listed("List", manifest("a"), {"apiVersion": "v1", "kind": "Service"}), "document 1: items[1].kind: "),
        (listed("PodList", manifest("a"), 7), "document 1: items[1]: expected object"),
        (listed("List", listed("List", manifest("a"))), "document 1: items[0].kind: "),
    ],
)
def test_other_documents_are_refused_by_name(document: dict[str, Any], message: str) -> None:
    decoded = decode(text(document))
    assert decoded.pods == ()
    assert f"web.yaml: {message}" in messages(decoded)[0]


@pytest.mark.parametrize("data", [b"just text", b"- a\n- b", b"5"])
def test_a_document_that_is_no_mapping_is_refused(data: bytes) -> None:
    assert "document 1: expected object" in messages(decode(data))[0]


@pytest.mark.parametrize("data", [b"", b"   \n", b"# all commented out\n#kind: Pod\n", b"---\n---\n"])
def test_a_file_that_states_nothing_is_an_error_because_it_may_be_half_written(data: bytes) -> None:
    assert messages(decode(data)) == [
        "web.yaml: has no pod or other object in it; to end the pods that it had before, remove the file"
    ]


def test_an_empty_list_states_that_there_is_nothing() -> None:
    assert decode(text(listed("PodList"))) == DecodedFile()


# --- errors -----------------------------------------------------------------------------------------------------


def with_bad_field(name: str) -> dict[str, Any]:
    bad = manifest(name)
    bad["spec"]["containers"][0]["imag"] = "x"
    return bad


def test_an_error_names_file_document_field_and_pod() -> None:
    decoded = decode(text(manifest("good"), with_bad_field("bad")))
    assert names(decoded) == ["good"]
    error = decoded.errors[0]
    assert (error.kind, error.file, error.document) == (ManifestErrorKind.INVALID, "web.yaml", 2)
    assert (error.field, error.namespace, error.name) == ("spec.containers[0].imag", "default", "bad")
    assert str(error).startswith("web.yaml: document 2: spec.containers[0].imag: unknown field")


def test_a_list_is_taken_whole_or_not_at_all() -> None:
    decoded = decode(text(listed("PodList", manifest("good"), with_bad_field("bad")), manifest("other")))
    assert names(decoded) == ["other"]
    assert messages(decoded)[0].startswith("web.yaml: document 1: items[1].spec.containers[0].imag: unknown field")


def test_validation_counts() -> None:
    decoded = decode(text(manifest("Not_A_Name"), manifest("web", restartPolicy="Never")))
    assert names(decoded) == ["web"]
    assert [error.field for error in decoded.errors] == ["metadata.name"]


def with_hooks(name: str, containers: int, handler: dict[str, Any]) -> dict[str, Any]:
    made = manifest(name)
    first = {**made["spec"]["containers"][0], "lifecycle": {"preStop": handler}}
    made["spec"]["containers"] = [{**first, "name": f"c{number}"} for number in range(containers)]
    return made


def test_every_field_that_is_refused_is_named_and_the_document_does_not_count() -> None:
    refused = manifest("b", os={"name": "windows"}, schedulingGates=[{"name": "g"}], priorityClassName="high")
    decoded = decode(text(manifest("a"), refused))
    assert names(decoded) == ["a"]
    assert {error.kind for error in decoded.errors} == {ManifestErrorKind.INVALID}
    assert {(error.document, error.name) for error in decoded.errors} == {(2, "b")}
    assert sorted(messages(decoded)) == [
        "web.yaml: document 2: spec.os.name: not supported: only Linux containers run here",
        "web.yaml: document 2: spec.schedulingGates: not supported: "
        "a gated pod must not start, and nobody here opens the gate",
    ]


def test_a_wrong_field_and_a_refused_one_are_told_together() -> None:
    decoded = decode(text(manifest("Not_A_Name", schedulingGates=[{"name": "g"}])))
    assert [error.field for error in decoded.errors] == ["metadata.name", "spec.schedulingGates"]


def test_what_is_warned_of_is_no_error() -> None:
    decoded = decode(text(manifest("a", priorityClassName="high", readinessGates=[{"conditionType": "example.com/a"}])))
    assert (names(decoded), decoded.errors) == (["a"], ())


def test_a_refused_field_refuses_the_whole_list() -> None:
    decoded = decode(
        text(listed("PodList", manifest("a"), manifest("b", schedulingGates=[{"name": "g"}])), manifest("c"))
    )
    assert names(decoded) == ["c"]
    assert [error.field for error in decoded.errors] == ["items[1].spec.schedulingGates"]


def test_refused_fields_are_bounded() -> None:
    count = MAX_FIELD_ERRORS + 5
    assert decode(text(with_hooks("a", count, {"sleep": {"seconds": 1}}))).errors == ()
    fields = [error.field for error in decode(text(with_hooks("a", count, {"tcpSocket": {"port": 1}}))).errors]
    assert fields == [f"spec.containers[{index}].lifecycle.preStop.tcpSocket" for index in range(MAX_FIELD_ERRORS)]


@pytest.mark.parametrize("uid", ["../../etc/passwd", "a b", "x" * 64, "-a", "a\nb", "é"])
def test_a_uid_that_would_not_do_for_labels_is_refused(uid: str) -> None:
    decoded = decode(text(manifest(metadata={"uid": uid})))
    assert [error.field for error in decoded.errors] == ["metadata.uid"]


@pytest.mark.parametrize(
    "data",
    [
        b'{"apiVersion": "v1", "kind": "\\ud800\\n"}',
        b'{"apiVersion": "v1", "kind": "Pod", "x\\ud800\\n\\u001b[31m": 1}',
        b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a\\udc80\\nb", "namespace": "\\r"}, "spec": 1}',
        b'{"apiVersion": "v1", "kind": "List", "items": [], "\\ud800": 1}',
        b'{"\\ud800": 1, "\\ud800": 2}',
        b'"a\\nb": *"\xc2\x85"',
        b"a: !<x\\n> 1",
    ],
)
def test_an_error_is_one_line_that_every_message_can_carry(data: bytes) -> None:
    decoded = decode(data)
    assert decoded.errors
    for error in decoded.errors:
        assert str(error).isprintable()
        assert (error.namespace + error.name).isprintable()
        msgspec.json.encode(error)


def test_findings_are_bounded() -> None:
    many = decode(text(*(with_bad_field(f"p{index}") for index in range(300))))
    assert len(many.errors) == MAX_ERRORS_PER_FILE
    listed_many = decode(text(listed("List", *(with_bad_field(f"p{index}") for index in range(300)))))
    assert len(listed_many.errors) == MAX_ERRORS_PER_FILE


def test_a_pod_larger_than_a_worker_can_be_sent_is_refused() -> None:
    room = MAX_ENCODED_POD_BYTES - encoded_bytes(with_argument(MIB)) + MIB
    (largest,) = decode(text(with_argument(room))).pods
    assert len(msgspec.msgpack.encode(largest.pod)) == MAX_ENCODED_POD_BYTES
    refused = decode(text(manifest("small"), with_argument(room + 1)))
    assert names(refused) == ["small"]
    assert messages(refused) == [
        f"web.yaml: document 2: takes {MAX_ENCODED_POD_BYTES + 1} bytes, more than the {MAX_ENCODED_POD_BYTES} "
        "that a worker can be sent of a pod"
    ]


def with_argument(size_bytes: int) -> dict[str, Any]:
    return manifest("large", containers=[{"name": "main", "image": "busybox", "args": ["x" * size_bytes]}])


def encoded_bytes(stated: dict[str, Any]) -> int:
    (found,) = decode(text(stated)).pods
    return len(msgspec.msgpack.encode(found.pod))


def test_pods_of_a_file_are_bounded() -> None:
    decoded = decode(
        text(listed("List", *(manifest(f"p{index}") for index in range(MAX_OBJECTS_PER_FILE + 1))), manifest("q"))
    )
    assert names(decoded) == ["q"]
    assert messages(decoded) == [f"web.yaml: document 1: more than {MAX_OBJECTS_PER_FILE} objects in one file"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda i: (
            st.lists(i)
            | st.dictionaries(
                st.sampled_from(["apiVersion", "kind", "metadata", "spec", "items", "name", "containers"]), i
            )
        ),
        max_leaves=12,
    )
)
def test_no_document_raises(value: Any) -> None:
    document = {"apiVersion": "v1", "kind": "List", "items": value}
    decoded = decode(text(document, {"apiVersion": "v1", "kind": "Pod", "spec": value}))
    assert decoded.errors


# --- identity ---------------------------------------------------------------------------------------------------


def test_the_uid_is_of_instance_source_namespace_and_name() -> None:
    uid = pod_uid("rootlet", "file", "default", "web")
    assert uid == "d9b10746-d8fe-851a-bab6-180f3198b6dd"
    parsed = uuid.UUID(uid)
    assert (parsed.variant, str(parsed)[14]) == (uuid.RFC_4122, "8")
    others = {
        pod_uid("other", "file", "default", "web"),
        pod_uid("rootlet", "apply", "default", "web"),
        pod_uid("rootlet", "file", "default2", "web"),
        pod_uid("rootlet", "file", "default", "2web"),
        pod_uid("rootlet", "file", "defaultweb", ""),
    }
    assert len(others | {uid}) == 6


def test_an_edit_keeps_the_uid_and_changes_the_hash() -> None:
    before, after = pod(image="busybox"), pod(image="alpine")
    assert before.metadata.uid == after.metadata.uid == pod_uid("test", "file", "default", "web")
    assert before.metadata.annotations[CONFIG_HASH] != after.metadata.annotations[CONFIG_HASH]
    assert re.fullmatch(r"[0-9a-f]{32}", before.metadata.annotations[CONFIG_HASH])


def test_what_a_manifest_states_itself_stays() -> None:
    stated = pod(metadata={"uid": "my-own-uid", "namespace": "prod", "annotations": {"a": "b"}})
    assert (stated.metadata.uid, stated.metadata.namespace) == ("my-own-uid", "prod")
    assert stated.metadata.annotations["a"] == "b"


def test_the_node_is_this_one_whatever_is_stated() -> None:
    elsewhere = pod(nodeName="elsewhere")
    assert elsewhere.spec.node_name == "node-1"
    assert elsewhere.metadata.annotations[CONFIG_HASH] == pod().metadata.annotations[CONFIG_HASH]


def test_what_is_not_stated_is_filled_in() -> None:
    filled = pod()
    assert filled.metadata.namespace == "default"
    assert filled.spec.node_name == "node-1"
    assert filled.metadata.annotations[CONFIG_SOURCE] == "file"
    assert filled.spec.restart_policy == "Always"


def test_what_a_cluster_wrote_is_taken_away() -> None:
    exported = pod(
        metadata={
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "deletionTimestamp": "2020-01-02T00:00:00Z",
            "deletionGracePeriodSeconds": 30,
            "generation": 7,
            "resourceVersion": "12",
            "selfLink": "/x",
            "managedFields": [{"manager": "kubectl"}],
        }
    )
    assert exported == pod()


def test_identity_is_stable_when_a_pod_is_read_again() -> None:
    once = pod(metadata={"annotations": {"a": "b", CONFIG_SEEN: "2020-01-01T00:00:00Z"}})
    again = identify(decode_pod(json.loads(encode_pod(once))), ORIGIN)
    assert again == once


def test_the_hash_ignores_order_and_what_this_host_adds() -> None:
    one = pod(metadata={"labels": {"a": "1", "b": "2"}})
    other = pod(metadata={"labels": {"b": "2", "a": "1"}, "annotations": {CONFIG_SEEN: "x", CONFIG_SOURCE: "y"}})
    assert one.metadata.annotations[CONFIG_HASH] == other.metadata.annotations[CONFIG_HASH]
    assert msgspec.structs.replace(one.metadata, annotations={}) == msgspec.structs.replace(
        other.metadata, annotations={}
    )


def test_everything_that_is_wrong_is_told_at_once_and_each_field_once() -> None:
    wrong = {"name": "Main", "image": "", "imagee": "busybox", "resources": {"limits": {"memory": "64q"}}}
    spec = {
        "restartPolicy": "Never",
        "containers": [wrong],
        "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}],
    }
    found = messages(decode(text({**manifest("web"), "spec": spec})))
    fields = [message.removeprefix("web.yaml: document 1: ").partition(": ")[0] for message in found]
    assert set(fields) == {
        "spec.containers[0].imagee",
        "spec.containers[0].name",
        "spec.containers[0].resources.limits[memory]",
        "spec.volumes[0].nfs",
    }
    assert len(fields) == len(set(fields))
    assert any("mounting NFS takes root: mount it on the host and use a hostPath volume" in each for each in found)
