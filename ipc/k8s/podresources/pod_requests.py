"""Resource requests of a pod and its containers, as numbers. Pure.

Mirrors PodRequests and PodLimits (component-helpers resource/helpers.go): pod-level resources count for the pod where
they are set, its containers together everywhere else; the overhead of its RuntimeClass comes on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.k8s.api.default_resources import (
    HUGEPAGES_PREFIX,
    aggregate_limits,
    aggregate_requests,
    is_pod_level_resource,
)
from ipc.k8s.api.quantity import Amount, add, parse_amount
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
"""Resource of which every pod takes one."""
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
COMPUTE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


def amount(resources: ResourceList, name: str) -> int:
    """Amount of a resource, in thousandths for cpu, in whole units else; rounded up (Quantity.MilliValue, Value). 0
    when it is not given."""
    return _in_units(parse_amount(resources[name]), name) if name in resources else 0


def _in_units(found: Amount, name: str) -> int:
    value = found.value  # in integers: a product of fractions would be reduced first
    return -(-value.numerator * (1000 if name == CPU else 1) // value.denominator)


def pod_requests(pod: Pod) -> Mapping[str, int]:
    """Amounts that the pod takes of the node, of `COMPUTE` and huge pages; a resource it does not ask for is absent."""
    return _counted(_request_amounts(pod))


def pod_limits(pod: Pod) -> Mapping[str, int]:
    """Limits of the pod as a whole, or the sums of its containers', of those that have one; 0 of none is absent."""
    return _counted(_limit_amounts(pod))


def effective_resources(pod: Pod) -> ResourceRequirements:
    """Requests and limits of the pod, as quantities (kubelet_pods.go, getEffectiveAllocatedResources)."""
    return ResourceRequirements(limits=_written(_limit_amounts(pod)), requests=_written(_request_amounts(pod)))


def _request_amounts(pod: Pod) -> Mapping[str, Amount]:
    """PodRequests."""
    own = pod.spec.resources.requests if pod.spec.resources is not None else {}
    asked = _with_own(aggregate_requests(pod.spec), own)
    for name, quantity in pod.spec.overhead.items():
        own_overhead = parse_amount(quantity)
        asked[name] = add(asked[name], own_overhead) if name in asked else own_overhead
    return asked


def _limit_amounts(pod: Pod) -> Mapping[str, Amount]:
    """PodLimits."""
    own = pod.spec.resources.limits if pod.spec.resources is not None else {}
    limits = _with_own(aggregate_limits(pod.spec), own)
    for name, quantity in pod.spec.overhead.items():
        if name in limits and limits[name].value:
            limits[name] = add(limits[name], parse_amount(quantity))
    return limits


def _with_own(of_containers: Mapping[str, Amount], own: ResourceList) -> dict[str, Amount]:
    pod_level = {name: parse_amount(quantity) for name, quantity in own.items() if is_pod_level_resource(name)}
    return {**of_containers, **pod_level}


def _counted(amounts: Mapping[str, Amount]) -> Mapping[str, int]:
    counted = {name: _in_units(found, name) for name, found in amounts.items() if is_counted(name)}
    return {name: number for name, number in counted.items() if number}


def _written(amounts: Mapping[str, Amount]) -> ResourceList:
    return {name: str(found) for name, found in amounts.items()}


def is_counted(name: str) -> bool:
    """Other resources are counted where somebody manages them."""
    return name in COMPUTE or name.startswith(HUGEPAGES_PREFIX)


def memory_request(container: Container) -> int:
    """Memory that a container asks for, in bytes."""
    return amount(container.resources.requests, MEMORY)
