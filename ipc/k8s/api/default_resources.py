"""Default requests and limits: of a container from its limits, of a pod from its containers.

Source: pkg/apis/core/v1/defaults.go SetDefaults_Pod, defaultHugePagePodLimits and defaultPodRequests (Kubernetes 1.36);
component-helpers resource/helpers.go AggregateContainerRequests.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec.structs

from ipc.k8s.api.quantity import Amount, QuantityError, add, larger, parse_amount
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import PodSpec

HUGEPAGES_PREFIX: Final = "hugepages-"
_DEFAULT_DOMAIN: Final = "kubernetes.io/"
_POD_LEVEL_RESOURCES: Final = ("cpu", "memory")

_Amounts = Mapping[str, Amount]


def requests_from_limits(resources: ResourceRequirements) -> ResourceRequirements:
    """Every limit without a request becomes that request too."""
    return msgspec.structs.replace(resources, requests={**resources.limits, **resources.requests})


def is_pod_level_resource(name: str) -> bool:
    """Whether `spec.resources` may name it (component-helpers resource.IsSupportedPodLevelResource)."""
    return name in _POD_LEVEL_RESOURCES or name.startswith(HUGEPAGES_PREFIX)


def is_extended(name: str) -> bool:
    """Whether a resource is one of a device plugin (v1helper.IsExtendedResourceName)."""
    return "/" in name and _DEFAULT_DOMAIN not in name and not name.startswith("requests.")


def default_pod_resources(spec: PodSpec) -> PodSpec:
    """Complete `spec.resources` where it is partly there; a spec without it, or with a bad quantity, stays as it is."""
    if spec.resources is None or not (spec.resources.limits or spec.resources.requests):
        return spec
    try:
        limits = _aggregate(spec, lambda container: container.resources.limits)
        requests = aggregate_requests(spec)
    except QuantityError:
        return spec
    with_limits = _with_huge_page_limits(spec.resources, limits)
    return msgspec.structs.replace(spec, resources=_with_requests(with_limits, requests))


def aggregate_requests(spec: PodSpec) -> Mapping[str, Amount]:
    """Requests of the pod's containers together (AggregateContainerRequests). Raises QuantityError."""
    return _aggregate(spec, lambda container: container.resources.requests)


def aggregate_limits(spec: PodSpec) -> Mapping[str, Amount]:
    """Limits of the pod's containers together. Raises QuantityError."""
    return _aggregate(spec, lambda container: container.resources.limits)


def _with_huge_page_limits(pod: ResourceRequirements, aggregate: _Amounts) -> ResourceRequirements:
    missing = {
        name: str(amount)
        for name, amount in aggregate.items()
        if name.startswith(HUGEPAGES_PREFIX) and name not in pod.requests
    }
    return msgspec.structs.replace(pod, limits={**missing, **pod.limits})


def _with_requests(pod: ResourceRequirements, aggregate: _Amounts) -> ResourceRequirements:
    if not pod.limits:
        return pod
    from_containers = {name: str(aggregate[name]) for name in _POD_LEVEL_RESOURCES if name in aggregate}
    from_limits = {name: limit for name, limit in pod.limits.items() if is_pod_level_resource(name)}
    return msgspec.structs.replace(pod, requests={**from_limits, **from_containers, **pod.requests})


def _aggregate(spec: PodSpec, amounts_of: Callable[[Container], ResourceList]) -> _Amounts:
    """Amounts that the containers need together: the regular ones and sidecars at once, or the largest init step.

    Linear in what they name: a step is looked at for its own container's resources alone, because what the sidecars
    before it need of others is in the total.
    """
    total: dict[str, Amount] = {}
    for container in spec.containers:
        _take_in(total, _parsed(amounts_of(container)), add)
    sidecars: dict[str, Amount] = {}
    largest_step: dict[str, Amount] = {}
    for container in spec.init_containers:
        own = _parsed(amounts_of(container))
        if container.restart_policy == "Always":
            _take_in(total, own, add)
            _take_in(sidecars, own, add)
        else:
            step = {name: add(sidecars[name], amount) if name in sidecars else amount for name, amount in own.items()}
            _take_in(largest_step, step, larger)
    _take_in(total, largest_step, larger)
    return total


def _parsed(resources: ResourceList) -> _Amounts:
    return {name: parse_amount(quantity) for name, quantity in resources.items()}


def _take_in(amounts: dict[str, Amount], others: _Amounts, of_both: Callable[[Amount, Amount], Amount]) -> None:
    for name, amount in others.items():
        amounts[name] = of_both(amounts[name], amount) if name in amounts else amount
