"""The quality-of-service class (pkg/apis/core/v1/helper/qos/qos.go)."""

from __future__ import annotations

from fractions import Fraction

from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.pod import Pod

_COMPUTE = ("cpu", "memory")


def compute_pod_qos(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort. A request that is not given equals its limit; one of zero does not.

    The pod's own resources count when there is any in them (PodLevelResourcesFixKubeletQOSClass).
    """
    containers, own = (*pod.spec.containers, *pod.spec.init_containers), pod.spec.resources
    resources = [own] if own is not None and (own.requests or own.limits) else [c.resources for c in containers]
    pairs = [(_amounts(each.requests), _amounts(each.limits)) for each in resources]
    if not any(amount > 0 for requests, limits in pairs for amount in (*requests.values(), *limits.values())):
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(requests, limits) for requests, limits in pairs) else "Burstable"


def _is_guaranteed(requests: dict[str, Fraction], limits: dict[str, Fraction]) -> bool:
    return all(limits.get(name, 0) > 0 and requests.get(name, limits[name]) == limits[name] for name in _COMPUTE)


def _amounts(amounts: ResourceList) -> dict[str, Fraction]:
    return {name: parse_quantity(amounts[name]) for name in _COMPUTE if name in amounts}
