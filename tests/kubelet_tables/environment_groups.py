"""Adapters of the groups about environments: values, references, and which addresses are a pod's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ipc.api.v1.config_objects import ConfigMap, Secret
from ipc.api.v1.container import Container, VolumeMount
from ipc.kubecontainer.config_objects import ConfigObjects
from ipc.podresources.pod_ips import sort_pod_ips
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, convert, pod
from workers.env.downward import Whereabouts
from workers.env.environment import EnvironmentSources, make_environment
from workers.env.expansion import expand, expand_all, expand_sub_path_expr
from workers.kubecontainer.config_error import ConfigError

_MASTER_SERVICE: Final = ("default", "kubernetes")
_NO_SERVICE_IP: Final = ("", "None")
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
    """Here are no services, so variables that name them are neither expected nor given to others. The Go test's objects
    are found by any name."""
    if case["pod"]["spec"].get("enableServiceLinks") is None:
        raise Later("never: there are no services, so nobody asks whether they are to be linked")
    of, container = pod(case["pod"]), convert(case["container"], Container)
    sources = EnvironmentSources(
        pod=of,
        objects=_objects(case),
        where=Whereabouts(
            node_name=case["node"]["name"],
            host_ips=tuple(case["node"]["host_ips"]),
            pod_ips=tuple(case["pod_ips"] or ()),
        ),
    )
    try:
        got: object = make_environment(container, sources)
    except ConfigError:
        got = _AN_ERROR
    return _AN_ERROR if case["expected_error"] else _without_services(case, container), got


def _objects(case: Json) -> ConfigObjects:
    names = {"test-config-map", "test-secret"}
    config_map = convert(case["config_map"], ConfigMap) if case["config_map"] else None
    secret = convert(case["secret"], Secret) if case["secret"] else None
    return ConfigObjects(
        config_maps=dict.fromkeys(names, config_map) if config_map else {},
        secrets=dict.fromkeys(names, secret) if secret else {},
    )


def _without_services(case: Json, container: Container) -> dict[str, str]:
    """What is expected, less what the kubelet adds for services; a reference to such a variable stays as it is."""
    expected = _named(case["expected"])
    if case["nil_service_lister"]:
        return expected
    own = {variable.name: variable.value for variable in container.env}
    of_services = {name for name in _service_variables(case) if name not in own}
    kept = {name: value for name, value in expected.items() if name not in of_services}
    return {name: own[name] if _refers_to(own.get(name, ""), of_services) else value for name, value in kept.items()}


def _service_variables(case: Json) -> set[str]:
    found: set[str] = set()
    for service in case["services"]:
        is_seen = (service["namespace"], service["name"]) == _MASTER_SERVICE or (
            service["namespace"] == case["pod"]["metadata"]["namespace"] and case["pod"]["spec"]["enableServiceLinks"]
        )
        if is_seen and service["cluster_ip"] not in _NO_SERVICE_IP:
            name, port = service["name"].upper(), f"{service['name'].upper()}_PORT_{service['ports'][0]['port']}_TCP"
            ends = ("", "_PROTO", "_PORT", "_ADDR")
            found |= {f"{name}_SERVICE_HOST", f"{name}_SERVICE_PORT", f"{name}_PORT", *(port + end for end in ends)}
    return found


def _refers_to(value: str, names: set[str]) -> bool:
    return any(f"$({name})" in value for name in names)


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
