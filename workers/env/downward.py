"""The downward API: fields of a pod and resources of its containers, as text. Pure.

For variables, and for files of volumes, which know fewer fields (`ipc.k8s.api.validation` says which). Mirrors
podFieldSelectorRuntimeValue (pkg/kubelet/kubelet_pods.go), ExtractFieldPathAsString and FormatMap
(pkg/fieldpath/fieldpath.go), ExtractContainerResourceValue (pkg/api/v1/resource/helpers.go) and
defaultPodLimitsForDownwardAPI (pkg/kubelet/kubelet_resources.go).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.quantity import in_units, parse_quantity
from ipc.k8s.api.v1.base import Quantity, ResourceList
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.env import ResourceFieldSelector
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.network.pod_ips import sort_pod_ips
from ipc.k8s.podresources.node_resources import NodeResources
from workers.kubecontainer.config_error import ConfigError

_HUGE_PAGES: Final = "hugepages-"
_DEFAULTED: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources whose limit stands for the node's share when there is none. Huge pages are never overcommitted."""
_POD_LEVEL: Final = ("cpu", "memory")


class PodPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod runs: what its manifest does not say."""

    node_name: str = ""
    host_ips: tuple[str, ...] = ()
    pod_ips: tuple[str, ...] = ()
    """Addresses of its sandbox, in any order; the host's for a pod in the host's network."""

    @property
    def sorted_pod_ips(self) -> tuple[str, ...]:
        return sort_pod_ips(self.pod_ips, self.host_ips[0] if self.host_ips else "")


_UNKNOWN: Final = PodPlacement()


# --- fields ------------------------------------------------------------------------------------------------------


def field_value(pod: Pod, field_path: str, where: PodPlacement = _UNKNOWN) -> str:
    """Value of a fieldRef; for files ``where`` is not needed. A missing label or annotation and an unknown address are
    empty.

    Raises ConfigError for what is no field of the downward API.
    """
    path, subscript = split_subscript(field_path)
    if path in _MAPS:
        values = _MAPS[path](pod)
        return format_map(values) if subscript is None else values.get(subscript, "")
    if subscript is None and path in _FIELDS:
        return _FIELDS[path](pod, where)
    raise ConfigError(f"unsupported fieldPath: {field_path}")


def split_subscript(field_path: str) -> tuple[str, str | None]:
    """``metadata.labels['a']`` is ``metadata.labels`` and ``a`` (SplitMaybeSubscriptedPath)."""
    path, opened, subscript = field_path.partition("['")
    return (path, subscript[:-2]) if path and opened and subscript.endswith("']") else (field_path, None)


def format_map(values: Mapping[str, str]) -> str:
    """A line for each, by key: ``key="value"``, the value as Go writes a string."""
    return "\n".join(f"{key}={quoted(values[key])}" for key in sorted(values))


_MAPS: Final[Mapping[str, Callable[[Pod], Mapping[str, str]]]] = {
    "metadata.labels": lambda pod: pod.metadata.labels,
    "metadata.annotations": lambda pod: pod.metadata.annotations,
}
_FIELDS: Final[Mapping[str, Callable[[Pod, PodPlacement], str]]] = {
    "metadata.name": lambda pod, where: pod.metadata.name,
    "metadata.namespace": lambda pod, where: pod.metadata.namespace,
    "metadata.uid": lambda pod, where: pod.metadata.uid,
    "spec.nodeName": lambda pod, where: pod.spec.node_name or where.node_name,
    "spec.host": lambda pod, where: pod.spec.node_name or where.node_name,
    "spec.serviceAccountName": lambda pod, where: pod.spec.service_account_name,
    "status.hostIP": lambda pod, where: next(iter(where.host_ips), ""),
    "status.hostIPs": lambda pod, where: ",".join(where.host_ips),
    "status.podIP": lambda pod, where: next(iter(where.sorted_pod_ips), ""),
    "status.podIPs": lambda pod, where: ",".join(where.sorted_pod_ips),
}


# --- resources ---------------------------------------------------------------------------------------------------


def resource_value(selector: ResourceFieldSelector, pod: Pod, container: Container | None, node: NodeResources) -> str:
    """Value of a resourceFieldRef in whole divisors, rounded up. ``container`` is the container of the variable; None
    for a file, whose selector names one.

    A limit that is not given is the pod's, or else what the node has; a request that is not given is 0.
    Raises ConfigError.
    """
    of = _container(selector, pod, container)
    kind, _, name = selector.resource.partition(".")
    if kind not in ("limits", "requests") or not (name in _DEFAULTED or name.startswith(_HUGE_PAGES)):
        raise ConfigError(f"unsupported container resource : {selector.resource}")
    amount = _limit(name, of, pod, node) if kind == "limits" else _amount(of.resources.requests, name)
    return str(in_units(amount, _value(selector.divisor)))


def _container(selector: ResourceFieldSelector, pod: Pod, container: Container | None) -> Container:
    name = selector.container_name
    if container is not None and name in ("", container.name):
        return container
    found = find_container(pod.spec, name)
    if found is None:
        raise ConfigError(f"container {name} not found")
    return found.container


def _limit(name: str, container: Container, pod: Pod, node: NodeResources) -> Fraction:
    own = _amount(container.resources.limits, name)
    if own or name not in _DEFAULTED:
        return own
    of_node = _amount(node.allocatable, name)
    of_pod = _amount(pod.spec.resources.limits, name) if pod.spec.resources is not None else Fraction()
    return of_pod if of_pod and of_node and name in _POD_LEVEL else of_node


def _amount(amounts: ResourceList, name: str) -> Fraction:
    return _value(amounts.get(name))


def _value(quantity: Quantity | None) -> Fraction:
    """Value of a quantity, 0 without one. The quantities of an admitted pod are all readable."""
    return Fraction() if quantity is None else parse_quantity(quantity)
