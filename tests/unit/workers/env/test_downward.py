"""The downward API's values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.quantity import MAX_UNITS
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.env import ResourceFieldSelector
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.node_resources import NodeResources
from tests.support.pods import UID, container, pod
from workers.env.downward import PodPlacement, field_value, format_map, resource_value, split_subscript
from workers.kubecontainer.config_error import ConfigError

NODE = NodeResources(allocatable={"cpu": "2", "memory": "4051288Ki", "ephemeral-storage": "64Gi"})
WHERE = PodPlacement(
    node_name="node-1", host_ips=("192.0.2.1", "2001:db8::1"), pod_ips=("fd00::2", "10.1.2.3", "10.4.4.4")
)


def labelled(**metadata: Any) -> Pod:
    of = pod("main", service_account_name="builder")
    return msgspec.structs.replace(of, metadata=msgspec.structs.replace(of.metadata, **metadata))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "default"),
        ("metadata.uid", UID),
        ("metadata.labels['app']", "shop"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['a.b/c']", "it's ['so']"),
        ("metadata.labels", 'app="shop"\ntier="front"'),
        ("metadata.annotations", "a.b/c=\"it's ['so']\""),
        ("spec.nodeName", "node-1"),
        ("spec.host", "node-1"),
        ("spec.serviceAccountName", "builder"),
        ("status.hostIP", "192.0.2.1"),
        ("status.hostIPs", "192.0.2.1,2001:db8::1"),
        ("status.podIP", "10.1.2.3"),
        ("status.podIPs", "10.1.2.3,fd00::2"),
    ],
)
def test_fields(path: str, value: str) -> None:
    of = labelled(labels={"tier": "front", "app": "shop"}, annotations={"a.b/c": "it's ['so']"})
    assert field_value(of, path, WHERE) == value


def test_the_manifests_node_counts_first() -> None:
    assert field_value(pod("main", node_name="this"), "spec.nodeName", WHERE) == "this"


@pytest.mark.parametrize("path", ["status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs", "spec.nodeName"])
def test_what_nobody_knows_is_empty(path: str) -> None:
    assert field_value(pod("main"), path) == ""


@pytest.mark.parametrize("path", ["status.phase", "metadata.name['a']", "spec", "", "['a']"])
def test_no_field(path: str) -> None:
    with pytest.raises(ConfigError, match="unsupported fieldPath"):
        field_value(pod("main"), path)


def test_a_map_as_go_writes_it() -> None:
    values = {"b": 'say "x"', "a": "1\n2\t\x01", "ä": "\U0001f600", "Z": ""}
    assert format_map(values) == "\n".join(['Z=""', r'a="1\n2\t\x01"', r'b="say \"x\""', 'ä="\U0001f600"'])
    assert format_map({}) == ""


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a['b']", ("a", "b")),
        ("a['']", ("a", "")),
        ("a['b']['c']", ("a", "b']['c")),
        ("a['b'", ("a['b'", None)),
        ("a", ("a", None)),
        ("['b']", ("['b']", None)),
    ],
)
def test_subscripts(path: str, parts: tuple[str, str | None]) -> None:
    assert split_subscript(path) == parts


# --- resources ---------------------------------------------------------------------------------------------------


def told(resource: str, divisor: Any = None, of: Pod | None = None, **resources: Any) -> str:
    """Value of the first container, which has these resources."""
    given = of or pod(container("main", resources=ResourceRequirements(**resources)))
    selector = ResourceFieldSelector(resource=resource, divisor=divisor)
    return resource_value(selector, given, given.spec.containers[0], NODE)


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1", "2"),
        ("limits.cpu", "0", "2"),
        ("limits.cpu", "1m", "1001"),
        ("requests.cpu", "1m", "250"),
        ("requests.cpu", "1", "1"),
        ("limits.memory", None, "1073741825"),
        ("limits.memory", "1Gi", "2"),
        ("limits.memory", "1Mi", "1025"),
        ("requests.memory", "1M", "65"),
        ("requests.ephemeral-storage", "1Ki", "1024"),
        ("limits.hugepages-2Mi", "1Mi", "4"),
        ("requests.hugepages-1Gi", None, "0"),
    ],
)
def test_resources_in_units_rounded_up(resource: str, divisor: str | None, value: str) -> None:
    limits = {"cpu": "1001m", "memory": 2**30 + 1, "hugepages-2Mi": "4Mi"}
    requests = {"cpu": 0.25, "memory": "64.1M", "ephemeral-storage": "1Mi"}
    assert told(resource, divisor, limits=limits, requests=requests) == value


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", "1m", "2000"),
        ("limits.memory", "1Ki", "4051288"),
        ("limits.ephemeral-storage", "1Gi", "64"),
        ("limits.hugepages-2Mi", None, "0"),
        ("requests.cpu", None, "0"),
        ("requests.memory", None, "0"),
    ],
)
def test_a_limit_that_is_not_given_is_what_the_node_has(resource: str, divisor: str | None, value: str) -> None:
    assert told(resource, divisor) == value
    assert told(resource, divisor, limits={"cpu": "0", "memory": 0}) == value


def test_a_limit_of_the_pod_comes_before_the_nodes() -> None:
    of = pod("main", resources=ResourceRequirements(limits={"cpu": "500m", "ephemeral-storage": "1Gi", "memory": 0}))
    assert told("limits.cpu", "1m", of) == "500"
    assert told("limits.ephemeral-storage", "1Gi", of) == "64", "not a resource of pods"
    assert told("limits.memory", "1Ki", of) == "4051288"


def test_of_a_node_that_nobody_has_looked_at() -> None:
    of = pod("main")
    selector = ResourceFieldSelector(resource="limits.memory")
    assert resource_value(selector, of, of.spec.containers[0], NodeResources()) == "0"


def test_of_another_container() -> None:
    init = container("init", resources=ResourceRequirements(limits={"cpu": "3"}))
    of = pod("main", init_containers=(init,))
    selector = ResourceFieldSelector(resource="limits.cpu", container_name="init")
    assert resource_value(selector, of, of.spec.containers[0], NODE) == "3"
    assert resource_value(selector, of, None, NODE) == "3"
    absent = ResourceFieldSelector(resource="limits.cpu", container_name="x")
    with pytest.raises(ConfigError, match=r"^container x not found$"):
        resource_value(absent, of, None, NODE)


@pytest.mark.parametrize("resource", ["limits.gpu", "cpu", "limit.cpu", ""])
def test_no_resource(resource: str) -> None:
    with pytest.raises(ConfigError, match="unsupported container resource : "):
        told(resource)


def test_a_value_fits_into_64_bits() -> None:
    assert told("limits.memory", limits={"memory": "100E"}) == str(MAX_UNITS)
