"""`apply` of what a command has changed: what a manifest states is what one gets, what commands have added stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.api.decode import encode_pod
from ipc.k8s.patching.strategic_diff import three_way_patch
from ipc.k8s.patching.strategic_merge import strategic_merge
from supervisor.patching.desired import as_desired
from supervisor.patching.patches import JSON_MERGE, JSON_PATCH, STRATEGIC, schema_of_kind
from supervisor.protocol.manifests import APPLY_SOURCE
from supervisor.sources.applied import AppliedStore
from supervisor.sources.objects.identity import Origin
from tests.support.applied import patched
from tests.support.manifests import text

ORIGIN = Origin(instance="test", node_name="node-1", source=APPLY_SOURCE)
KEY = ("default", "web")
LABEL = {"metadata": {"labels": {"tier": "front"}}}


@pytest.fixture
def store(tmp_path: Path) -> AppliedStore:
    return AppliedStore(tmp_path / "applied", ORIGIN)


def pod(spec: Any = None, **container: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox:1.36", **container}]
    whole = {"containers": containers, **(spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": whole}


def applied(store: AppliedStore, stated: dict[str, Any]) -> str:
    result = store.apply("web.yaml", text(stated), {})
    (line,) = result.lines or tuple(map(str, result.errors))
    return line.removeprefix("pod/web ")


def patch(store: AppliedStore, changes: object, patch_type: str = STRATEGIC) -> None:
    result = patched(store, KEY, patch_type, json.dumps(changes).encode())
    assert result is not None
    assert result.lines == ("pod/web patched",)


def spec_of(store: AppliedStore) -> Any:
    (item,) = store.read().pods
    return json.loads(encode_pod(item.pod))["spec"]


def variables(*pairs: str) -> list[dict[str, str]]:
    return [dict(zip(("name", "value"), pair.split("="), strict=True)) for pair in pairs]


LISTS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "a variable stated twice": ("env", variables("MODE=a", "MODE=b"), variables("MODE=a")),
    "twice from now on": ("env", variables("MODE=a"), variables("MODE=a", "MODE=b")),
    "in another order": ("env", variables("MODE=a", "X=1", "MODE=b"), variables("MODE=b", "X=1", "MODE=a")),
    "a port of two protocols": (
        "ports",
        [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}],
        [{"containerPort": 53, "protocol": "UDP"}],
    ),
    "two of three ports": (
        "ports",
        [{"containerPort": 53, "protocol": word} for word in ("TCP", "UDP", "SCTP")],
        [{"containerPort": 53, "protocol": word} for word in ("SCTP", "TCP")],
    ),
}


@pytest.mark.parametrize(("field", "before", "after"), LISTS.values(), ids=LISTS)
def test_a_list_whose_key_identifies_nothing_is_what_the_manifest_says(
    store: AppliedStore, field: str, before: list[Any], after: list[Any]
) -> None:
    applied(store, pod(**{field: before}))
    patch(store, LABEL)
    assert applied(store, pod(**{field: after})) == "configured"
    assert spec_of(store)["containers"][0][field] == after
    assert applied(store, pod(**{field: after})) == "unchanged"
    assert applied(store, pod(**{field: before})) == "configured"
    assert spec_of(store)["containers"][0][field] == before


SPECS: dict[str, tuple[str, list[Any], list[Any]]] = {
    "an address of two lists of names": (
        "hostAliases",
        [{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["b"]}],
        [{"ip": "10.0.0.1", "hostnames": ["b"]}],
    ),
    "a secret without a name": ("imagePullSecrets", [{}, {"name": "x"}], [{"name": "x"}]),
    "one topology, two rules": (
        "topologySpreadConstraints",
        [
            {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": word}
            for word in ("DoNotSchedule", "ScheduleAnyway")
        ],
        [{"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"}],
    ),
    "init containers in another order": (
        "initContainers",
        [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}],
        [{"name": "b", "image": "b:1"}, {"name": "a", "image": "a:1"}],
    ),
}


@pytest.mark.parametrize(("field", "before", "after"), SPECS.values(), ids=SPECS)
def test_lists_of_the_pod_too(store: AppliedStore, field: str, before: list[Any], after: list[Any]) -> None:
    applied(store, pod({field: before}))
    patch(store, LABEL)
    assert applied(store, pod({field: after})) == "configured"
    found = spec_of(store)[field]
    assert [{key: item[key] for key in stated} for item, stated in zip(found, after, strict=True)] == after


def test_what_a_command_has_added_stays_where_keys_identify(store: AppliedStore) -> None:
    """As kubectl's apply does; only a list that cannot be merged is the manifest's alone."""
    ports = [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
    applied(store, pod(env=variables("MODE=a"), ports=ports))
    main = {"name": "main", "env": variables("ADDED=1"), "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    patch(store, {"spec": {"containers": [main]}})
    assert applied(store, pod(env=variables("MODE=b"), ports=ports)) == "configured"
    found = spec_of(store)["containers"][0]
    assert sorted(item["name"] for item in found["env"]) == ["ADDED", "MODE"]
    assert found["ports"] == ports


EXEC, HTTP = {"exec": {"command": ["true"]}}, {"httpGet": {"port": 80}}
FROM_FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}
TOGETHER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "handler of a probe": ({"livenessProbe": EXEC}, {"livenessProbe": {"exec": None, **HTTP}}),
    "handler of a hook": ({"lifecycle": {"preStop": EXEC}}, {"lifecycle": {"preStop": {"exec": None, **HTTP}}}),
    "value of a variable": (
        {"env": variables("MODE=a")},
        {"env": [{"name": "MODE", "value": None, "valueFrom": FROM_FIELD}]},
    ),
    "source of a variable": (
        {"env": [{"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "app", "key": "mode"}}}]},
        {"env": [{"name": "MODE", "valueFrom": {"configMapKeyRef": None, **FROM_FIELD}}]},
    ),
    "profile": (
        {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
        {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}}},
    ),
}


@pytest.mark.parametrize(("stated", "changed"), TOGETHER.values(), ids=TOGETHER)
def test_of_what_says_one_thing_the_manifest_s_is_left(
    store: AppliedStore, stated: dict[str, Any], changed: dict[str, Any]
) -> None:
    applied(store, pod(**stated))
    first = spec_of(store)
    patch(store, {"spec": {"containers": [{"name": "main", **changed}]}})
    assert spec_of(store) != first
    assert applied(store, pod(**stated)) == "configured"
    assert spec_of(store) == first


def test_a_volume_has_the_source_that_the_manifest_states(store: AppliedStore) -> None:
    stated = pod({"volumes": [{"name": "data", "emptyDir": {}}]})
    applied(store, stated)
    first = spec_of(store)
    volume = {"name": "data", "emptyDir": None, "hostPath": {"path": "/srv"}}
    patch(store, {"spec": {"volumes": [volume]}})
    assert applied(store, stated) == "configured"
    assert spec_of(store) == first


@pytest.mark.parametrize("patch_type", [JSON_MERGE, JSON_PATCH])
def test_whatever_has_changed_it(store: AppliedStore, patch_type: str) -> None:
    applied(store, pod(env=variables("MODE=a")))
    twice = variables("MODE=a", "MODE=b")
    main = spec_of(store)["containers"][0]
    merge = {"spec": {"containers": [{**main, "env": twice}]}}
    operations = [{"op": "add", "path": "/spec/containers/0/env/1", "value": twice[1]}]
    patch(store, merge if patch_type == JSON_MERGE else operations, patch_type)
    assert applied(store, pod(env=variables("MODE=a"))) == "configured"
    assert spec_of(store)["containers"][0]["env"] == variables("MODE=a")


def test_a_quantity_in_other_words_is_unchanged(store: AppliedStore) -> None:
    limits = {"limits": {"cpu": "1000m", "memory": "1024Mi"}}
    assert applied(store, pod(resources=limits)) == "created"
    for cpu, memory in ((1, "1Gi"), ("1", "1024Mi"), (1.0, "1048576Ki")):
        assert applied(store, pod(resources={"limits": {"cpu": cpu, "memory": memory}})) == "unchanged"
    assert spec_of(store)["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    patch(store, LABEL)
    assert applied(store, pod(resources={"limits": {"cpu": "1000m", "memory": "1Gi"}})) == "unchanged"


ENV = st.lists(
    st.tuples(st.sampled_from("ABC"), st.sampled_from("xyz")).map(lambda pair: {"name": pair[0], "value": pair[1]}),
    max_size=4,
)


@given(ENV, ENV, ENV)
def test_a_process_sees_the_variables_that_are_stated(
    last: list[dict[str, str]], present: list[dict[str, str]], stated: list[dict[str, str]]
) -> None:
    """The last one of a name counts."""
    original, current, modified = (
        {"spec": {"containers": [{"name": "main", **({"env": env} if env else {})}]}} for env in (last, present, stated)
    )
    schema = schema_of_kind("Pod")
    original, current = as_desired(original, modified, current, schema)
    found = strategic_merge(current, three_way_patch(original, modified, current, schema), schema)
    env = found["spec"]["containers"][0].get("env", [])
    values = {item["name"]: item["value"] for item in stated}
    assert {item["name"]: item["value"] for item in env if item["name"] in values} == values
    assert [item for item in env if item["name"] in values] == stated
