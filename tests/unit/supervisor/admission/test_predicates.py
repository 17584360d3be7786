"""Admission: who is rejected, for which reason and in which words, and what is only warned of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ipc.k8s.api.support.findings import unsupported_fields
from ipc.k8s.api.support.table import Support
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources
from supervisor.admission import predicates
from supervisor.admission.host_ports import HostPort, host_ports
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.predicates import UNKNOWN_NODE, Admitted, Rejected
from supervisor.config.settings import Settings
from tests.support.manifests import pod

SETTINGS = Settings(node_name="node-1", max_pods=3)


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", **fields}


def publishing(name: str, *ports: dict[str, Any], **spec: Any) -> Any:
    return pod(name, containers=[container(ports=[{"containerPort": 80, **port} for port in ports])], **spec)


def admit(
    candidate: Pod, active: Iterable[Pod], settings: Settings, node: NodeResources = UNKNOWN_NODE
) -> Admitted | Rejected:
    others = NodeUsage(active).without([candidate.metadata.uid])
    return predicates.admit(candidate, others, settings, node)


def decide(candidate: Any, *active: Any) -> Admitted | Rejected:
    return admit(candidate, active, SETTINGS)


def test_a_plain_pod_is_admitted_without_a_word() -> None:
    assert decide(pod()) == Admitted()


@pytest.mark.parametrize(
    ("fields", "reason", "message"),
    [
        (
            {"metadata": {"labels": {"kubernetes.io/os": "windows"}}},
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
        (
            {"os": {"name": "windows"}},
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ),
    ],
)
def test_pods_for_elsewhere_are_rejected(fields: dict[str, Any], reason: str, message: str) -> None:
    assert decide(pod(**fields)) == Rejected(reason, message)


@pytest.mark.parametrize(
    "fields",
    [
        {"os": {"name": "linux"}},
        {"metadata": {"labels": {"kubernetes.io/os": "linux"}}},
        {"nodeName": "node-2"},
        {"tolerations": [{"operator": "Exists"}]},
    ],
)
def test_what_speaks_to_a_scheduler_is_not_looked_at(fields: dict[str, Any]) -> None:
    assert isinstance(decide(pod(**fields)), Admitted)


def test_pods_beyond_max_pods_are_rejected() -> None:
    active = [pod(name) for name in "abc"]
    assert decide(pod("d"), *active[:2]) == Admitted()
    assert decide(pod("d"), *active) == Rejected(
        "OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
    )
    assert decide(pod("c", image="new"), *active) == Admitted()


@pytest.mark.parametrize(
    ("mine", "theirs", "conflict"),
    [
        ({"hostPort": 8080}, {"hostPort": 8080}, True),
        ({"hostPort": 8080}, {"hostPort": 8081}, False),
        ({"hostPort": 8080}, {"hostPort": 8080, "protocol": "UDP"}, False),
        ({"hostPort": 8080, "hostIP": "127.0.0.1"}, {"hostPort": 8080}, True),
        ({"hostPort": 8080}, {"hostPort": 8080, "hostIP": "127.0.0.1"}, True),
        ({"hostPort": 8080, "hostIP": "127.0.0.1"}, {"hostPort": 8080, "hostIP": "127.0.0.2"}, False),
        ({"hostPort": 8080, "hostIP": "127.0.0.1"}, {"hostPort": 8080, "hostIP": "127.0.0.1"}, True),
        ({}, {"hostPort": 80}, False),
        ({}, {}, False),
    ],
)
def test_host_ports_conflict_as_upstream_says(mine: dict[str, Any], theirs: dict[str, Any], conflict: bool) -> None:
    verdict = decide(publishing("mine", mine), publishing("theirs", theirs))
    assert isinstance(verdict, Rejected) == conflict
    if isinstance(verdict, Rejected):
        assert verdict.reason == "NodePorts"
        assert verdict.message.startswith(
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports ("
        )
        assert verdict.message.endswith("is held by default/theirs)")


def test_a_host_network_pod_takes_its_container_ports() -> None:
    assert list(host_ports(publishing("a", {}, hostNetwork=True))) == [HostPort("0.0.0.0", "TCP", 80)]
    verdict = decide(publishing("b", {"hostPort": 80}), publishing("a", {}, hostNetwork=True))
    assert isinstance(verdict, Rejected)


def test_ports_of_sidecars_count_and_of_other_init_containers_do_not() -> None:
    port = {"containerPort": 1, "hostPort": 81}
    sidecar = container("s", restartPolicy="Always", ports=[port])
    once = container("i", ports=[{"containerPort": 1, "hostPort": 82}])
    assert [found.port for found in host_ports(pod(initContainers=[once, sidecar]))] == [81]


@pytest.mark.parametrize(
    ("port", "lowest_port", "words"),
    [
        (
            {"hostPort": 80},
            1024,
            "0.0.0.0:80/TCP cannot be had: ports below 1024 (net.ipv4.ip_unprivileged_port_start)",
        ),
        ({"hostPort": 1023, "protocol": "UDP"}, 1024, "0.0.0.0:1023/UDP cannot be had: ports below 1024"),
        ({"hostPort": 8080, "protocol": "SCTP"}, 1024, "0.0.0.0:8080/SCTP cannot be had: rootless Podman forwards no"),
        ({"hostPort": 1024}, 1024, ""),
        ({"hostPort": 80}, 80, ""),
        ({"protocol": "SCTP"}, 1024, ""),
    ],
)
def test_ports_that_this_user_cannot_give(port: dict[str, Any], lowest_port: int, words: str) -> None:
    verdict = admit(publishing("a", port), [], SETTINGS, NodeResources(unprivileged_port_start=lowest_port))
    assert isinstance(verdict, Rejected) == bool(words)
    if isinstance(verdict, Rejected):
        assert verdict.reason == "HostPortForbidden"
        assert verdict.message.startswith(f"host port {words}")


def test_in_the_hosts_network_nobody_listens_below_either() -> None:
    assert isinstance(admit(publishing("a", {}, hostNetwork=True), [], SETTINGS), Rejected)
    assert (
        admit(publishing("a", {"containerPort": 8080, "protocol": "SCTP"}, hostNetwork=True), [], SETTINGS)
        == Admitted()
    )


def test_an_update_does_not_conflict_with_the_pod_itself() -> None:
    before = publishing("a", {"hostPort": 8080})
    assert decide(publishing("a", {"hostPort": 8080}, restartPolicy="Never"), before) == Admitted()


def warned_of() -> Pod:
    """A pod that sets a field which is not acted on."""
    for fields in (
        {"readinessGates": [{"conditionType": "example.com/ready"}]},
        {"containers": [container(readinessProbe={"exec": {"command": ["true"]}})]},
        {"priorityClassName": "high"},
    ):
        candidate = pod(**fields)
        if {finding.support for finding in unsupported_fields(candidate)} == {Support.WARNED}:
            return candidate
    raise AssertionError("no example of a field that is warned of")


def test_a_field_that_is_not_acted_on_yet_is_warned_of() -> None:
    candidate = warned_of()
    verdict = decide(candidate)
    assert verdict == Admitted(tuple(f"{found.path}: {found.why}" for found in unsupported_fields(candidate)))
    assert verdict.warnings


def test_the_first_rejection_wins_in_upstreams_order() -> None:
    taken = publishing("b", {"hostPort": 80})
    full = [taken, pod("c"), pod("d")]
    port = {"hostPort": 80}
    everything = publishing("a", port, metadata={"labels": {"kubernetes.io/os": "windows"}})
    unmatched = publishing("a", port, nodeSelector={"disk": "none"})
    conflicting = publishing("a", port)
    reasons = []
    for candidate, others in ((everything, full), (unmatched, full), (unmatched, [taken]), (conflicting, [taken])):
        verdict = decide(candidate, *others)
        assert isinstance(verdict, Rejected)
        reasons.append(verdict.reason)
    assert reasons == ["PodOSSelectorNodeLabelDoesNotMatch", "OutOfpods", "NodeAffinity", "NodePorts"]


NODE = NodeResources(
    allocatable={"cpu": "2", "memory": "1Gi", "ephemeral-storage": "10G"}, controllers=frozenset({"cpu", "memory"})
)


def asking(name: str, limits: dict[str, str] | None = None, **requests: str) -> Any:
    return pod(name, containers=[container(resources={"requests": requests, "limits": limits or {}})])


@pytest.mark.parametrize(
    ("requests", "reason", "numbers"),
    [
        ({"cpu": "1001m"}, "OutOfcpu", "cpu, requested: 1001, used: 1000, capacity: 2000"),
        ({"memory": "1Gi"}, "OutOfmemory", "memory, requested: 1073741824, used: 1048576, capacity: 1073741824"),
        ({"hugepages-2Mi": "2Mi"}, "OutOfhugepages-2Mi", "hugepages-2Mi, requested: 2097152, used: 0, capacity: 0"),
    ],
)
def test_a_pod_for_which_the_node_has_too_little_left_is_rejected(
    requests: dict[str, str], reason: str, numbers: str
) -> None:
    candidate = asking("large", limits=requests, **requests)
    found = admit(candidate, [asking("other", cpu="1", memory="1Mi")], SETTINGS, NODE)
    assert found == Rejected(reason, f"Node didn't have enough resource: {numbers}")


def test_a_pod_that_just_fits_is_admitted() -> None:
    others = [asking("other", cpu="1"), asking("itself", cpu="1")]
    assert admit(asking("itself", cpu="1"), others, SETTINGS, NODE) == Admitted()
    assert admit(asking("large", cpu="100"), others, SETTINGS) == Admitted(), "nothing is known of the node"


def test_an_extended_resource_that_the_node_lacks_is_not_counted() -> None:
    given = {"example.com/gpu": "1"}
    assert admit(asking("web", limits=given, **given), [], SETTINGS, NODE) == Admitted(
        ("resources: example.com/gpu: nothing on this host provides it: it is not counted, and no container gets any",)
    )


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        ("64m", 'fractional byte value "64m" is invalid, must be an integer: did you mean 64M or 64Mi?'),
        ("0.5", 'fractional byte value "500m" is invalid, must be an integer: did you mean 500M or 500Mi?'),
    ],
)
def test_memory_of_less_than_a_byte_is_told_of(quantity: str, said: str) -> None:
    found = admitted(asking("web", limits={"memory": quantity}, memory="1Mi")).warnings
    assert found == (f"spec.containers[0].resources.limits[memory]: {said}",)
    assert admitted(asking("web", limits={"memory": "64M", "cpu": "64m"}, memory="64e6")).warnings == ()


def test_a_warning_names_the_first_resources_that_nobody_provides() -> None:
    given = {f"example.com/r{number:02}": "1" for number in range(12)}
    (warning,) = admitted(asking("web", limits=given, **given)).warnings
    assert "example.com/r09 and 2 more: nothing" in warning


def admitted(candidate: Pod) -> Admitted:
    verdict = decide(candidate)
    assert isinstance(verdict, Admitted)
    return verdict


@pytest.mark.parametrize(
    ("annotations", "warnings"),
    [
        ({"example.com/own": "x", "container.seccomp.security.alpha.kubernetes.io": "x"}, []),
        (
            {"seccomp.security.alpha.kubernetes.io/pod": "runtime/default"},
            [
                "[seccomp.security.alpha.kubernetes.io/pod]: "
                'non-functional in v1.27+; use the "seccompProfile" field instead'
            ],
        ),
        (
            {
                "container.seccomp.security.alpha.kubernetes.io/a": "unconfined",
                "container.seccomp.security.alpha.kubernetes.io/b": "unconfined",
                "security.alpha.kubernetes.io/sysctls": "a=1",
            },
            [
                "[container.seccomp.security.alpha.kubernetes.io/a] (and 1 more): "
                'non-functional in v1.27+; use the "seccompProfile" field instead',
                '[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead',
            ],
        ),
    ],
)
def test_annotations_that_nothing_acts_on_are_warned_of(annotations: dict[str, str], warnings: list[str]) -> None:
    candidate = pod(metadata={"annotations": annotations})
    assert admitted(candidate).warnings == tuple(f"metadata.annotations{warning}" for warning in warnings)


def test_what_is_said_to_a_cluster_is_named_in_one_warning() -> None:
    quiet: dict[str, Any] = {"schedulerName": "default-scheduler", "enableServiceLinks": False}
    candidate = pod(tolerations=[{"operator": "Exists"}], serviceAccountName="robot", **quiet)
    assert admitted(candidate).warnings == (
        "spec.serviceAccountName, spec.serviceAccount, spec.tolerations: these fields speak to a "
        "cluster, and have no effect on a single host",
    )


def test_of_affinity_only_what_has_no_effect_is_named() -> None:
    """The required part of node affinity is looked at, so that no warning may say otherwise."""
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}]}
    preferred = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    nodes = {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
    }
    pods = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    candidate = pod(affinity={"nodeAffinity": nodes, "podAffinity": pods, "podAntiAffinity": pods})
    assert admitted(candidate).warnings == (
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution, spec.affinity.podAffinity, "
        "spec.affinity.podAntiAffinity: these fields speak to a cluster, and have no effect on a single host",
    )
    del nodes["preferredDuringSchedulingIgnoredDuringExecution"]
    assert admitted(pod(affinity={"nodeAffinity": nodes})).warnings == ()


def test_limits_that_nobody_enforces_are_told_of_once() -> None:
    limited = asking("web", limits={"cpu": "1", "memory": "1Mi", "ephemeral-storage": "1G"})
    none = NodeResources(allocatable=NODE.allocatable, controllers=frozenset({"memory"}))
    assert admit(limited, [], SETTINGS, none) == Admitted(
        (
            "resources: cpu: not enforced: this user may not set cpu of cgroups: "
            "Delegate=cpu memory pids in user@.service allows it",
        )
    )
    assert admit(asking("web", limits={"memory": "1Mi"}), [], SETTINGS, NODE) == Admitted()
