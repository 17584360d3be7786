"""Refusals of the decoder, with their paths and words."""

import datetime
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api import decode
from ipc.k8s.api.decode import MAX_FIELD_ERRORS, MAX_FREE_FORM_DEPTH, MAX_VALUES, decode_pod, encode_pod
from ipc.k8s.api.errors import FieldError, FieldErrors
from ipc.k8s.api.v1.pod import Pod
from tests.support.api_manifests import manifest, pods


def refusal(obj: object) -> tuple[str, ...]:
    with pytest.raises(FieldErrors) as caught:
        decode_pod(obj)
    return tuple(map(str, caught.value.errors))


def pod_or_errors(obj: object) -> Pod | FieldErrors:
    try:
        return decode_pod(obj)
    except FieldErrors as errors:
        return errors


def nested(levels: int) -> dict[str, Any]:
    return {} if levels == 0 else {"f:x": nested(levels - 1)}


TODAY = datetime.date(2026, 1, 2)
MAIN = "spec.containers[0]"

REFUSED: list[tuple[str, object, list[str]]] = [
    ("list", [], ["expected object, got array"]),
    ("nothing", None, ["expected object, got null"]),
    ("text", "pod", ["expected object, got string"]),
    ("no type", {}, ["apiVersion: Required value: must be v1", "kind: Required value: must be Pod"]),
    ("other kind", {**manifest(), "kind": "Job"}, ['kind: Unsupported value: "Job": supported values: "Pod"']),
    ("kind is no text", {**manifest(), "kind": ["Pod"]}, ["kind: expected string, got array"]),
    (
        "other version",
        {**manifest(), "apiVersion": "v2"},
        ['apiVersion: Unsupported value: "v2": supported values: "v1"'],
    ),
    (
        "no metadata and no spec",
        {"apiVersion": "v1", "kind": "Pod"},
        ["metadata: Required value", "spec: Required value"],
    ),
    ("no containers", manifest(spec={"containers": None}), ["spec.containers: Required value"]),
    ("unknown in the object", {**manifest(), "foo": 1}, ["foo: unknown field"]),
    (
        "unknown, close to a field",
        manifest(container={"imagepullPolicy": "Always"}),
        [f"{MAIN}.imagepullPolicy: unknown field, did you mean imagePullPolicy?"],
    ),
    ("unknown, no text", manifest(container={7: "x"}), [f"{MAIN}.7: unknown field"]),
    ("unknown, a number too long to print", manifest(container={2**20_000: "x"}), [f"{MAIN}.<int>: unknown field"]),
    ("unknown, not printable", manifest(container={"a\n\ud800": 1}), [f"{MAIN}.a\\n\\ud800: unknown field"]),
    ("unknown with no value", manifest(spec={"foo": None}), ["spec.foo: unknown field"]),
    (
        "port is text",
        manifest(container={"ports": [{"containerPort": 80}, {"containerPort": "80"}]}),
        [f"{MAIN}.ports[1].containerPort: expected integer, got string"],
    ),
    (
        "port is a float",
        manifest(container={"ports": [{"containerPort": 80.0}]}),
        [f"{MAIN}.ports[0].containerPort: expected integer, got number"],
    ),
    ("port is missing", manifest(container={"ports": [{}]}), [f"{MAIN}.ports[0].containerPort: Required value"]),
    (
        "int32",
        manifest(container={"ports": [{"containerPort": 2**31}]}),
        [f"{MAIN}.ports[0].containerPort: does not fit into 32 bits"],
    ),
    (
        "int64",
        manifest(spec={"activeDeadlineSeconds": 2**63}),
        ["spec.activeDeadlineSeconds: does not fit into 64 bits"],
    ),
    ("int is a bool", manifest(spec={"priority": True}), ["spec.priority: expected integer, got boolean"]),
    ("bool is text", manifest(container={"tty": "yes"}), [f"{MAIN}.tty: expected boolean, got string"]),
    ("text is a number", manifest(metadata={"name": 7}), ["metadata.name: expected string, got integer"]),
    (
        "text is a YAML date",
        manifest(metadata={"annotations": {"day": TODAY}}),
        ["metadata.annotations[day]: expected string, got date (quote it)"],
    ),
    ("command is text", manifest(container={"command": "ls"}), [f"{MAIN}.command: expected array, got string"]),
    (
        "object is a list",
        manifest(container={"securityContext": []}),
        [f"{MAIN}.securityContext: expected object, got array"],
    ),
    ("null item", manifest(container={"env": [None]}), [f"{MAIN}.env[0]: expected object, got null"]),
    (
        "map is a list",
        manifest(metadata={"labels": ["a"]}),
        ["metadata.labels: expected object of named values, got array"],
    ),
    (
        "map key is a number",
        manifest(metadata={"labels": {1: "a"}}),
        ["metadata.labels[1]: expected string, got integer"],
    ),
    (
        "image is long",
        manifest(container={"image": "i" * 1025}),
        [f"{MAIN}.image: Too long: may not be more than 1024 characters"],
    ),
    (
        "path is long",
        manifest(container={"volumeMounts": [{"name": "v", "mountPath": "/", "subPath": "p" * 400_000}]}),
        [f"{MAIN}.volumeMounts[0].subPath: Too long: may not be more than 4096 characters"],
    ),
    (
        "quantity",
        manifest(container={"resources": {"limits": {"cpu": []}}}),
        [f"{MAIN}.resources.limits[cpu]: expected string or integer or number, got array"],
    ),
    (
        "quantity that JSON cannot write",
        manifest(container={"resources": {"limits": {"cpu": float("nan")}}}),
        [f"{MAIN}.resources.limits[cpu]: is not a finite number"],
    ),
    (
        "int or string",
        manifest(container={"livenessProbe": {"tcpSocket": {"port": 1.5}}}),
        [f"{MAIN}.livenessProbe.tcpSocket.port: expected string or integer, got number"],
    ),
    (
        "enumeration",
        manifest(spec={"restartPolicy": "always"}),
        ['spec.restartPolicy: Unsupported value: "always": supported values: "Always", "OnFailure", "Never"'],
    ),
    ("enumeration of another type", manifest(spec={"dnsPolicy": 1}), ["spec.dnsPolicy: expected string, got integer"]),
    (
        "protocol",
        manifest(container={"ports": [{"containerPort": 1, "protocol": "tcp"}]}),
        [f'{MAIN}.ports[0].protocol: Unsupported value: "tcp": supported values: "TCP", "UDP", "SCTP"'],
    ),
    ("lone surrogate", manifest(container={"args": ["\ud800"]}), [f"{MAIN}.args[0]: is not valid Unicode text"]),
    (
        "too deep free form",
        manifest(metadata={"managedFields": [{"fieldsV1": nested(MAX_FREE_FORM_DEPTH + 1)}]}),
        [
            f"metadata.managedFields[0].fieldsV1{'[f:x]' * (MAX_FREE_FORM_DEPTH + 1)}: "
            f"nested more than {MAX_FREE_FORM_DEPTH} levels deep"
        ],
    ),
    (
        "free form that JSON cannot write",
        manifest(metadata={"managedFields": [{"fieldsV1": {"a": [TODAY]}}]}),
        [
            "metadata.managedFields[0].fieldsV1[a][0]: "
            "expected string or integer or number or boolean, got date (quote it)"
        ],
    ),
    (
        "free form with a key that JSON cannot write",
        manifest(metadata={"managedFields": [{"fieldsV1": {"a": {True: 1}}}]}),
        ["metadata.managedFields[0].fieldsV1[a]: expected string, got boolean"],
    ),
    (
        "several at once, all named",
        manifest(spec={"foo": 1, "hostNetwork": 1}, container={"stdin": 0, "name": None}),
        [
            "spec.foo: unknown field",
            f"{MAIN}.name: Required value",
            f"{MAIN}.stdin: expected boolean, got integer",
            "spec.hostNetwork: expected boolean, got integer",
        ],
    ),
]


@pytest.mark.parametrize(("obj", "errors"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused_with_path(obj: object, errors: list[str]) -> None:
    assert refusal(obj) == tuple(errors)


def test_error_text_joins_all_findings() -> None:
    error = FieldErrors([FieldError("a.b", "is wrong"), FieldError("", "is worse")])
    assert str(error) == "a.b: is wrong; is worse"
    with pytest.raises(ValueError, match="at least one"):
        FieldErrors([])


def test_null_is_absent_as_in_go() -> None:
    empty = {"labels": None, "annotations": {"empty": None}}
    pod = decode_pod(manifest(spec={"volumes": None, "dnsConfig": None}, container={"env": None}, metadata=empty))
    assert pod == decode_pod(manifest(metadata={"annotations": {"empty": ""}}))


@pytest.mark.parametrize("status", [{}, None, 7, {"phase": "Running", "unknown": []}])
def test_status_is_accepted_and_ignored(status: object) -> None:
    assert decode_pod({**manifest(), "status": status}) == decode_pod(manifest())


def test_zero_value_of_an_enumeration_means_not_chosen() -> None:
    assert decode_pod(manifest(spec={"restartPolicy": ""})) == decode_pod(manifest())


def test_every_container_kind_and_volume_decodes() -> None:
    pod = decode_pod(
        manifest(
            spec={
                "initContainers": [{"name": "init", "image": "a", "restartPolicy": "Always"}],
                "ephemeralContainers": [{"name": "debug", "image": "b", "targetContainerName": "main"}],
                "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "api", "downwardAPI": {}}],
            },
            container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        )
    )
    assert [container.name for container in (*pod.spec.init_containers, *pod.spec.ephemeral_containers)] == [
        "init",
        "debug",
    ]
    assert pod.spec.volumes[0].empty_dir is not None
    assert pod.spec.volumes[1].downward_api is not None


def test_number_of_findings_is_bounded() -> None:
    assert len(refusal(manifest(spec={f"unknown{n}": n for n in range(10 * MAX_FIELD_ERRORS)}))) == MAX_FIELD_ERRORS


def test_shared_yaml_nodes_cannot_make_a_pod_too_large() -> None:
    variables = [{"name": "A", "value": "a"}] * 1000
    container = {"name": "main", "image": "a", "env": variables}
    assert refusal(manifest(spec={"containers": [container] * 1000})) == (f"more than {MAX_VALUES} values",)


def test_a_node_that_holds_itself_is_refused() -> None:
    endless: dict[str, object] = {"name": "x"}
    endless["nested"] = endless
    assert refusal(manifest(container=endless)) == ("spec.containers[0].nested: unknown field",)


def test_long_names_are_cut() -> None:
    (message,) = refusal(manifest(spec={"x" * 100_000: 1}))
    assert len(message) < 200


@given(st.text(st.characters()), st.text(st.characters()))
def test_messages_are_one_line_of_encodable_text(key: str, value: str) -> None:
    for message in refusal(manifest(spec={key: 1, "restartPolicy": f"{value}?"}, metadata={"labels": {f"{key}": 1}})):
        assert message.isprintable()


def test_values_that_may_be_secret_are_not_repeated() -> None:
    wrong = {"env": [{"name": "TOKEN", "value": 123456789}], "args": [987654321]}
    messages = "".join(refusal(manifest(container=wrong)))
    assert "123456789" not in messages
    assert "987654321" not in messages


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3),
    max_leaves=12,
)
FIELDS = st.sampled_from(["name", "image", "env", "ports", "volumes", "labels", "securityContext", "livenessProbe"])


@given(JSON, st.dictionaries(FIELDS, JSON), st.dictionaries(FIELDS, JSON), st.dictionaries(FIELDS, JSON))
def test_any_data_gives_a_pod_or_field_errors(
    obj: object, spec: dict[str, object], container: dict[str, object], metadata: dict[str, object]
) -> None:
    for data in (obj, manifest(spec, container, metadata)):
        assert isinstance(pod_or_errors(data), Pod | FieldErrors)


ODD: st.SearchStrategy[object] = st.sampled_from(
    [
        None,
        "",
        "\ud800",
        float("inf"),
        2**63,
        -(2**63),
        2**64,
        0.5,
        True,
        "ü",
        [],
        {},
        [None],
        {"a": None},
        {1: 2},
        TODAY,
    ]
) | st.builds(nested, st.integers(MAX_FREE_FORM_DEPTH - 8, MAX_FREE_FORM_DEPTH + 1))


@given(pods(), ODD, st.randoms(use_true_random=False))
def test_the_short_way_of_decoding_finds_what_the_walk_finds(pod: Pod, odd: object, random: Random) -> None:
    manifest = json.loads(encode_pod(pod))
    manifest["metadata"]["managedFields"] = [{"fieldsV1": {"f:x": 1}}]
    holder: Any = manifest
    while (
        holder and isinstance(value := holder[key := _some_key(holder, random)], dict | list) and random.random() < 0.8
    ):
        holder = value
    if holder:
        holder[key] = odd
    found = pod_or_errors(manifest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode, "_is_plain", lambda _: False)
        walked = pod_or_errors(manifest)
    assert str(found) == str(walked)
    assert isinstance(found, FieldErrors) or found == walked


def _some_key(holder: dict[str, object] | list[object], random: Random) -> Any:
    return random.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))


def test_a_plain_pod_is_decoded_without_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_Walk", None)
    assert decode_pod(manifest()).metadata.name == manifest()["metadata"]["name"]


def test_aliases_of_many_values_are_not_counted_for_ever() -> None:
    many: object = [0] * 1000
    for _ in range(20):
        many = [many] * 1000
    assert refusal(manifest(container={"args": many}))
