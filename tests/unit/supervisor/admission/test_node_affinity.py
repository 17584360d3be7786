"""Nodes that a pod asks for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.scheduling import Taint
from ipc.k8s.podresources.node_resources import NodeResources
from supervisor.admission import node_labels as labels_of_node
from supervisor.admission.node_labels import node_labels
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import Admitted, Rejected, admit
from supervisor.config.settings import Settings
from tests.support.manifests import pod

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
    monkeypatch.setattr(labels_of_node, "HOST_ARCH", "amd64")
    own = {"kubernetes.io/hostname": "node-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    assert node_labels(Settings(node_name="node-1"), NodeResources()) == own
    assert node_labels(SETTINGS, NodeResources()) == own | {"disk": "ssd", "cores": "8", "empty": ""}
    assert (
        node_labels(Settings(node_labels={"kubernetes.io/arch": "other"}), NodeResources())["kubernetes.io/arch"]
        == "other"
    )


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


# --- a node of a cluster --------------------------------------------------------------------------------------------

OF_CLUSTER = {CONFIG_SOURCE: API_SOURCE}
AWAY = Taint(key="away", value="now", effect="NoExecute")
TAINTED = Rejected(
    "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
)


def of_cluster(**fields: Any) -> Pod:
    wanted = pod(**fields)
    return msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(wanted.metadata, annotations=OF_CLUSTER))


def in_cluster(wanted: Pod, labels: dict[str, str] | None, *taints: Taint) -> Admitted | Rejected:
    return admit(wanted, NodeUsage(), SETTINGS, NodeResources(labels=labels, no_execute=taints))


def test_labels_of_the_cluster_s_node_count_before_the_configuration_s() -> None:
    for wanted in (of_cluster(nodeSelector={"pool": "a"}), pod(nodeSelector={"pool": "a"})):
        assert isinstance(in_cluster(wanted, {"pool": "a"}), Admitted)
        assert in_cluster(wanted, {"pool": "b"}) == REJECTED
    assert in_cluster(of_cluster(nodeSelector={"disk": "ssd"}), {}) == REJECTED


def test_before_the_cluster_has_told_its_pods_stay_where_its_scheduler_put_them() -> None:
    assert isinstance(in_cluster(of_cluster(nodeSelector={"pool": "a"}), None), Admitted)
    assert in_cluster(pod(nodeSelector={"pool": "a"}), None) == REJECTED


def test_a_taint_that_drives_pods_away_is_for_those_of_the_cluster() -> None:
    assert in_cluster(of_cluster(), {}, AWAY) == TAINTED
    assert isinstance(in_cluster(pod(), {}, AWAY), Admitted)


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "away", "operator": "Exists"}, True),
        ({"key": "away", "operator": "Exists", "effect": "NoExecute"}, True),
        ({"key": "away", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "away", "value": "now"}, True),
        ({"key": "away", "operator": "Equal", "value": "later"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_which_tolerations_meet_a_taint(toleration: dict[str, str], tolerated: bool) -> None:
    decided = in_cluster(of_cluster(tolerations=[toleration]), {}, AWAY)
    assert isinstance(decided, Admitted) if tolerated else decided == TAINTED
