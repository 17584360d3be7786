"""Which nodes a pod asks for."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.podresources.node_resources import NodeResources
from supervisor.admission import node_affinity
from supervisor.admission.node_affinity import node_labels
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import Admitted, Rejected, admit
from supervisor.config.settings import Settings
from tests.harness.manifests import pod

SETTINGS = Settings(node_name="node-1", node_labels={"disk": "ssd", "cores": "8", "empty": ""})
REJECTED = Rejected("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")


def decide(**fields: Any) -> Admitted | Rejected:
    return admit(pod(**fields), NodeUsage(), SETTINGS, NodeResources())


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": nodes}}


def where(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, name: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}


def test_the_labels_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_affinity, "HOST_ARCH", "amd64")
    own = {"kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    assert node_labels(Settings(node_name="node-1")) == own
    assert node_labels(SETTINGS) == own | {"disk": "ssd", "cores": "8", "empty": ""}
    assert node_labels(Settings(node_labels={"kubernetes.io/arch": "other"}))["kubernetes.io/arch"] == "other"


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({"disk": "ssd", "kubernetes.io/hostname": "node-1"}, True),
        ({"empty": ""}, True),
        ({"missing": ""}, False),
        ({"disk": "hdd"}, False),
        ({"disk": "ssd", "kubernetes.io/os": "windows"}, False),
    ],
)
def test_a_node_selector(selector: dict[str, str], matches: bool) -> None:
    assert decide(nodeSelector=selector) == (Admitted() if matches else REJECTED)


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        (where("disk", "In", "hdd", "ssd"), True),
        (where("disk", "In", "hdd"), False),
        (where("missing", "In", "x"), False),
        (where("disk", "NotIn", "hdd"), True),
        (where("disk", "NotIn", "ssd"), False),
        (where("missing", "NotIn", "x"), True),
        (where("disk", "Exists"), True),
        (where("missing", "Exists"), False),
        (where("disk", "DoesNotExist"), False),
        (where("missing", "DoesNotExist"), True),
        (where("cores", "Gt", "7"), True),
        (where("cores", "Gt", "8"), False),
        (where("cores", "Lt", "9"), True),
        (where("cores", "Lt", "8"), False),
        (where("disk", "Gt", "0"), False),
        (where("cores", "Lt", "many"), False),
        (where("cores", "Lt", "9" * 30), False),
        (where("missing", "Lt", "1"), False),
        (named("In", "node-1"), True),
        (named("In", "node-2"), False),
        (named("NotIn", "node-2"), True),
        (named("NotIn", "node-1"), False),
        ({**where("disk", "Exists"), **named("In", "node-2")}, False),
        ({}, False),
    ],
)
def test_a_term_of_required_affinity(term: dict[str, Any], matches: bool) -> None:
    assert decide(**required(term)) == (Admitted() if matches else REJECTED)


def test_one_term_is_enough_and_the_selector_counts_beside_it() -> None:
    either = required(where("disk", "In", "hdd"), where("cores", "Exists"))
    assert decide(**either) == Admitted()
    assert decide(**either, nodeSelector={"disk": "hdd"}) == REJECTED


def test_what_is_only_preferred_is_no_condition() -> None:
    preferred = {"weight": 1, "preference": where("missing", "Exists")}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    assert isinstance(decide(affinity=affinity), Admitted)
