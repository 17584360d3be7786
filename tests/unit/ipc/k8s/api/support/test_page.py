"""The table of support: complete, exact, and what it makes of pods."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.decode import decode_pod
from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.schema import Kind, Shape, field_paths, literal_values, shape_of, struct_fields
from ipc.k8s.api.support.cluster import CLUSTER_FIELDS
from ipc.k8s.api.support.findings import UNSUPPORTED, FieldFinding, row_of, unsupported_fields
from ipc.k8s.api.support.table import ANNOTATION_ROWS, ROWS, FieldSupport, Support
from ipc.k8s.api.support.warnings import field_warnings
from ipc.k8s.api.v1.pod import Pod
from tests import named_tests
from tests.support.api_manifests import manifest

KEY = {"key": "k", "path": "p", "user": 7}
_INDEX = re.compile(r"\[\d+\]")
REPOSITORY = Path(__file__).resolve().parents[6]
PATHS = tuple(field_paths(Pod))
LEAVES = tuple(path for path in PATHS if not any(other.startswith((f"{path}.", f"{path}[*]")) for other in PATHS))
BY_PATH = {row.path: row for row in ROWS}


def covering_rows(path: str, row_at: Callable[[str], FieldSupport | None] = row_of) -> Iterator[FieldSupport]:
    """Rows that speak for a path, the most specific first."""
    while path:
        if row := row_at(path):
            yield row
        path = path.removesuffix("[*]") if path.endswith("[*]") else path.rpartition(".")[0]


def test_every_field_is_spoken_for() -> None:
    assert [path for path in LEAVES if not any(covering_rows(path))] == []


def test_every_row_names_a_field_once() -> None:
    assert set(BY_PATH) - set(PATHS) == set()
    assert [path for path, count in Counter(row.path for row in ROWS).items() if count > 1] == []


def test_no_row_is_hidden_by_longer_ones() -> None:
    """But one of a whole list of containers, below which those of regular ones speak."""
    speaking = {next(covering_rows(leaf, row_at)).path for leaf in LEAVES for row_at in (row_of, BY_PATH.get)}
    assert set(BY_PATH) - speaking == set()


def test_no_finding_names_a_field_of_which_a_part_is_acted_on() -> None:
    unsupported = [row.path for row in ROWS if row.support in UNSUPPORTED]
    below = {path: [row.path for row in ROWS if row.path.startswith((f"{path}.", f"{path}["))] for path in unsupported}
    assert {path: rows for path, rows in below.items() if set(rows) - set(unsupported)} == {}


def test_rows_that_are_not_plainly_supported_give_a_reason() -> None:
    assert [row.path for row in ROWS if row.support is not Support.SUPPORTED and not row.why] == []


def test_accepted_values_stand_on_warned_or_refused_leaves_and_fit_the_field() -> None:
    for row in (row for row in ROWS if row.accepted):
        assert row.support not in (Support.SUPPORTED, Support.SUPPORTED_WITH_NOTE)
        assert row.path in LEAVES
        for value in row.accepted:
            assert unsupported_fields(pod_with(row.path, value)) == ()


def pod_with(path: str, value: object) -> Pod:
    """A pod that sets this field to this value, and else only what is required."""
    obj: Any = json.loads(msgspec.json.encode(decode_pod(manifest())))
    place, struct = obj, Pod
    *parents, last = path.split(".")
    for name in parents:
        field = struct_fields(struct)[name.removesuffix("[*]")]
        shape = shape_of(field.shape.inner) if field.shape.kind is Kind.LIST else field.shape
        struct = shape.inner
        inner = place.setdefault(field.name, [required(struct)] if name.endswith("[*]") else required(struct))
        place = inner[0] if name.endswith("[*]") else inner
    place[last] = value
    return msgspec.convert(obj, Pod)


def required(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: some(field.shape) for field in struct_fields(struct).values() if field.required}


def some(shape: Shape) -> Any:
    """A value of this shape that is not the default of any field."""
    if shape.kind is Kind.STRUCT:
        return {**required(shape.inner), **first_optional(shape.inner)}
    if shape.kind is Kind.LIST:
        return [some(shape_of(shape.inner))]
    if shape.kind is Kind.MAP:
        return {"key": some(shape_of(shape.inner))}
    if choices := literal_values(shape.inner):
        return choices[-1] or choices[0]
    return next(value for value in ("x", 7, True) if fits(value, shape.inner))


def first_optional(struct: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.name: some(field.shape) for field in struct_fields(struct).values() if not field.required}


def fits(value: object, annotation: Any) -> bool:
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return True


def shape_at(path: str) -> Shape:
    struct: Any = Pod
    for name in path.split("."):
        shape = struct_fields(struct)[name.removesuffix("[*]")].shape
        struct = shape_of(shape.inner).inner if name.endswith("[*]") else shape.inner
    return shape


def unaccepted_values(row: FieldSupport) -> Iterator[Any]:
    """Values that are not as good as acted on."""
    shape = shape_at(row.path)
    candidates = (*literal_values(shape.inner), some(shape), False)
    fitting = (value for value in candidates if shape.kind is not Kind.LEAF or fits(value, shape.inner))
    return (value for value in fitting if value != "" and value not in row.accepted)


def unaccepted_value(row: FieldSupport) -> Any:
    return next(unaccepted_values(row))


LOUD = [
    row
    for row in ROWS
    if row.support not in (Support.SUPPORTED, Support.SUPPORTED_WITH_NOTE) and any(map(repr, unaccepted_values(row)))
]
CONTAINER_LISTS = ("spec.initContainers", "spec.ephemeralContainers")
QUIET = [row for row in ROWS if row not in LOUD and row.path not in ("apiVersion", "kind")]


@pytest.mark.parametrize("row", LOUD, ids=lambda row: row.path)
def test_setting_the_field_is_found(row: FieldSupport) -> None:
    pod = pod_with(row.path, unaccepted_value(row))
    expected = FieldFinding(row.path.replace("[*]", "[0]"), row.support, row.why)
    assert expected in unsupported_fields(pod)
    assert expected in unsupported_fields(default_pod(pod))
    assert expected in unsupported_fields(pod, frozenset({row.support}))
    assert expected not in unsupported_fields(pod, UNSUPPORTED - {row.support})


@pytest.mark.parametrize(
    ("spec", "container", "path"),
    [
        ({"volumes": [{"name": "v", "emptyDir": {"mode": 0o1777}}]}, {}, "spec.volumes[0].emptyDir.mode"),
        ({"volumes": [{"name": "v", "emptyDir": {"mode": 0o777}}]}, {}, ""),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultUser": 7}}]},
            {},
            "spec.volumes[0].secret.defaultUser",
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c", "items": [KEY]}}]}}]},
            {},
            "spec.volumes[0].projected.sources[0].configMap.items[0].user",
        ),
        (
            {},
            {"volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}]},
            "spec.containers[0].volumeMounts[0].bindMountOptions",
        ),
        (
            {},
            {"livenessProbe": {"httpGet": {"port": 80, "protocol": "HTTP2"}}},
            "spec.containers[0].livenessProbe.httpGet.protocol",
        ),
        (
            {},
            {"readinessProbe": {"grpc": {"port": 80, "mode": "TLS"}}},
            "spec.containers[0].readinessProbe.grpc.mode",
        ),
    ],
)
def test_alpha_fields_of_1_37_are_refused_by_name(
    spec: dict[str, object], container: dict[str, object], path: str
) -> None:
    found = unsupported_fields(default_pod(decode_pod(manifest(spec=spec, container=container))))
    assert [(each.path, each.support) for each in found] == ([(path, Support.REFUSED)] if path else [])


@pytest.mark.parametrize("containers", CONTAINER_LISTS)
def test_what_is_said_of_containers_is_said_of_all_kinds(containers: str) -> None:
    """But for what a row of its own list says."""
    rows = [row for row in ROWS if row.path.startswith("spec.containers[*].")]
    paths = {row.path.replace("spec.containers", containers): row for row in rows}
    for path, row in ((path, row) for path, row in paths.items() if path not in BY_PATH):
        if row in LOUD:
            pod = pod_with(path, unaccepted_value(row))
            assert FieldFinding(path.replace("[*]", "[0]"), row.support, row.why) in unsupported_fields(pod)
        for value in row.accepted if row in LOUD else (some(shape_at(row.path)),):
            assert said_of(row, pod_with(path, value)) == []


@pytest.mark.parametrize("row", QUIET, ids=lambda row: row.path)
def test_setting_the_field_is_quiet(row: FieldSupport) -> None:
    value = [{"name": "x"}] if row.path in CONTAINER_LISTS else some(shape_at(row.path))
    assert said_of(row, pod_with(row.path, value)) == []


def said_of(row: FieldSupport, pod: Pod) -> list[FieldFinding]:
    """Findings of a pod for which no longer row than that speaks."""
    found = ((finding, row_of(_INDEX.sub("[*]", finding.path))) for finding in unsupported_fields(pod))
    return [finding for finding, own in found if own is None or own.path == row.path]


def findings(pod: Pod) -> list[tuple[str, Support]]:
    return [(finding.path, finding.support) for finding in unsupported_fields(pod)]


@pytest.mark.parametrize(
    "container",
    [
        {},
        {"ports": [{"containerPort": 80, "hostPort": 8080}], "env": [{"name": "A", "value": "b"}], "tty": True},
        {"securityContext": {}, "resources": {}, "lifecycle": {}},
        {"securityContext": {"privileged": False, "allowPrivilegeEscalation": True}},
        {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    ],
)
def test_what_this_issue_runs_is_admitted_without_a_word(container: dict[str, object]) -> None:
    pod = decode_pod(manifest(spec={"hostNetwork": True, "hostname": "h", "securityContext": {}}, container=container))
    assert findings(pod) == []
    assert findings(default_pod(pod)) == []


_NFS = {"nfs": {"server": "somewhere", "path": "/"}}


def test_each_place_is_named_once_with_its_index() -> None:
    second = {"name": "second", "image": "a:1", "lifecycle": {"postStart": {"tcpSocket": {"port": 1}}}, "resources": {}}
    first = {"name": "first", "image": "a:1", "lifecycle": {"preStop": {"tcpSocket": {"port": 1}}}}
    volumes = [_NFS | {"name": name} for name in ("a", "b")]
    pod = decode_pod(manifest(spec={"containers": [first, second], "volumes": volumes}))
    expected = [
        ("spec.volumes[0].nfs", Support.REFUSED),
        ("spec.volumes[1].nfs", Support.REFUSED),
        ("spec.containers[0].lifecycle.preStop.tcpSocket", Support.REFUSED),
        ("spec.containers[1].lifecycle.postStart.tcpSocket", Support.REFUSED),
    ]
    assert findings(pod) == expected
    assert findings(default_pod(pod)) == expected


def test_a_field_set_to_an_empty_object_counts() -> None:
    assert findings(decode_pod(manifest(container={"livenessProbe": {}}))) == []
    hook = {"lifecycle": {"preStop": {"tcpSocket": {"port": 1}}}}
    assert findings(decode_pod(manifest(container=hook))) == [
        ("spec.containers[0].lifecycle.preStop.tcpSocket", Support.REFUSED)
    ]


@pytest.mark.parametrize("row", ANNOTATION_ROWS, ids=lambda row: row.path)
def test_an_annotation_that_is_acted_on_is_not_warned_of(row: FieldSupport) -> None:
    key = row.path.removeprefix("metadata.annotations[").removesuffix("]")
    assert unsupported_fields(pod_with("metadata.annotations", {"a": "b", key: "1M"})) == ()


def test_nothing_is_called_supported_without_an_end_to_end_test() -> None:
    supported = [row for row in ROWS if row.support in (Support.SUPPORTED, Support.SUPPORTED_WITH_NOTE)]
    named = tomllib.loads((REPOSITORY / "tests" / "pod_field_tests.toml").read_text())
    assert [row.path for row in supported if not named.get(row.path)] == []
    assert set(named) == {row.path for row in (*supported, *ANNOTATION_ROWS)}
    claimed = [test for tests in named.values() for test in tests]
    assert {test.partition("/")[0] for test in claimed} == {"e2e"}
    assert named_tests.missing(claimed, REPOSITORY / "tests") == []


def test_what_is_said_of_a_cluster_is_said_of_rows() -> None:
    of_containers = {path.replace(other, "spec.containers[*]") for path in CLUSTER_FIELDS for other in OTHER_LISTS}
    assert {path for path in of_containers if not any(other in path for other in OTHER_LISTS)} <= set(BY_PATH)


OTHER_LISTS = tuple(f"{name}[*]" for name in CONTAINER_LISTS)


def test_no_pod_of_a_cluster_is_warned_of_what_the_cluster_gives() -> None:
    """A readiness gate that nobody opens is a trap in a file, and everyday on a node of a cluster."""
    pod = pod_with("spec.readinessGates", [{"conditionType": "www.example.com/gate"}])
    assert field_warnings(pod) == (
        "spec.readinessGates: nobody here can set these conditions: the pod never becomes Ready",
    )
    metadata = msgspec.structs.replace(pod.metadata, annotations={CONFIG_SOURCE: API_SOURCE})
    assert field_warnings(msgspec.structs.replace(pod, metadata=metadata)) == ()
