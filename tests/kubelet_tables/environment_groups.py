"""Adapters of the groups about environments: values, references, and which addresses are a pod's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ipc.k8s.api.annotations import API_SOURCE, CONFIG_SOURCE
from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.container import Container, VolumeMount
from ipc.k8s.network.pod_ips import sort_pod_ips
from ipc.k8s.podobjects.cluster_values import ClusterValues
from ipc.k8s.podobjects.config_objects import ConfigObjects
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, convert, pod
from workers.cluster.objects.service_variables import (
    Service,
    ServiceMeta,
    ServicePort,
    ServiceSpec,
    service_variables,
)
from workers.env.downward import PodPlacement
from workers.env.environment import EnvironmentSources, make_environment
from workers.env.expansion import expand, expand_all, expand_sub_path_expr
from workers.kubecontainer.config_error import ConfigError

_AN_ERROR: Final = "an error"


def _env_expansion(case: Json) -> Result:
    """The first context that has a name counts."""
    values = {name: value for context in reversed(case["contexts"]) for name, value in context.items()}
    return case["expected"], expand(case["input"], values)


def _expand_command_and_args(case: Json) -> Result:
    container, values = convert(case["container"], Container), _named(case["envs"])
    expected = (case["expected_command"] or [], case["expected_args"] or [])
    return expected, (expand_all(container.command, values), expand_all(container.args, values))


def _expand_sub_path_expr(case: Json) -> Result:
    mount, values = convert(case["mount"], VolumeMount), _named(case["envs"])
    try:
        return case.get("expected_subpath"), expand_sub_path_expr(mount.sub_path_expr, values)
    except ConfigError as error:
        return case.get("error"), error.message


def _make_environment_variables(case: Json) -> Result:
    """The Go test's objects are found by any name. A kubelet without a lister has no services; one whose services are
    not synced makes no environment but for static pods, which are told of none here."""
    if case["pod"]["spec"].get("enableServiceLinks") is None:
        raise Later("never: the field has a default, so no pod is without it")
    of, container = pod(case["pod"]), convert(case["container"], Container)
    if not case["static_pod"]:
        annotations = {**of.metadata.annotations, CONFIG_SOURCE: API_SOURCE}
        of = msgspec.structs.replace(of, metadata=msgspec.structs.replace(of.metadata, annotations=annotations))
    sources = EnvironmentSources(
        pod=of,
        objects=msgspec.structs.replace(_objects(case), cluster=_cluster_values(case)),
        where=PodPlacement(
            node_name=case["node"]["name"],
            host_ips=tuple(case["node"]["host_ips"]),
            pod_ips=tuple(case["pod_ips"] or ()),
        ),
    )
    try:
        got: object = make_environment(container, sources)
    except ConfigError:
        got = _AN_ERROR
    return _AN_ERROR if case["expected_error"] else _named(case["expected"]), got


def _cluster_values(case: Json) -> ClusterValues | None:
    """None while the services are not known."""
    services, is_unsynced, has_no_lister = case["services"], case["unsynced_services"], case["nil_service_lister"]
    if is_unsynced:
        return None
    known = () if has_no_lister else tuple(map(_service, services))
    spec, namespace = case["pod"]["spec"], case["pod"]["metadata"]["namespace"]
    variables = service_variables(known, namespace, links=spec["enableServiceLinks"])
    return ClusterValues(service_variables=variables)


def _service(found: Json) -> Service:
    ports = tuple(ServicePort(port["port"], port.get("name", ""), port["protocol"]) for port in found["ports"])
    return Service(ServiceMeta(found["name"], found["namespace"]), ServiceSpec(found["cluster_ip"], ports))


def _objects(case: Json) -> ConfigObjects:
    names = {"test-config-map", "test-secret"}
    config_map = convert(case["config_map"], ConfigMap) if case["config_map"] else None
    secret = convert(case["secret"], Secret) if case["secret"] else None
    return ConfigObjects(
        config_maps=dict.fromkeys(names, config_map) if config_map else {},
        secrets=dict.fromkeys(names, secret) if secret else {},
    )


def _sort_pod_ips(case: Json) -> Result:
    return tuple(case["expected"]), sort_pod_ips(case["pod_ips"], case["node_ip"])


def _named(variables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in variables}


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "env_expansion": _env_expansion,
    "expand_command_and_args": _expand_command_and_args,
    "expand_subpath_expr": _expand_sub_path_expr,
    "make_environment_variables": _make_environment_variables,
    "sort_pod_ips": _sort_pod_ips,
}
