"""Quantities, requests, limits, claims and resize policies.

Source: pkg/apis/core/validation validateResourceName, ValidateContainerResourceRequirements, validatePodResources,
validateResizePolicy, validateContainerResourceDivisor; pkg/apis/core/helper.
"""

from collections.abc import Collection
from fractions import Fraction
from typing import Final

from ipc.k8s.api.default_resources import HUGEPAGES_PREFIX, is_pod_level_resource
from ipc.k8s.api.errors import duplicate, forbidden, invalid, not_found, not_supported, required, shown_key
from ipc.k8s.api.quantity import QuantityError, parse_amount, parse_quantity
from ipc.k8s.api.v1.base import Quantity, ResourceList
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.env import ResourceFieldSelector
from ipc.k8s.api.validation.checks import Errors, indexed, unique
from ipc.k8s.api.validation.names import qualified_name_problem

_CONTAINER_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_RESIZABLE_RESOURCES: Final = ("cpu", "memory")
_KUBERNETES_DOMAIN: Final = "kubernetes.io/"
_CPU_DIVISORS: Final = ("1", "1m")
_BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def validate_quantity(path: str, quantity: Quantity) -> Errors:
    """The quantity must parse and must not be negative."""
    try:
        value = parse_quantity(quantity)
    except QuantityError as error:
        yield invalid(path, quantity, str(error))
        return
    if value < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")


def validate_container_resources(resources: ResourceRequirements, claims: Collection[str], path: str) -> Errors:
    """The resources of one container; `claims` are the names of the pod's resource claims."""
    yield from _requirements(resources, path)
    for name in {**resources.limits, **resources.requests}:
        if not _is_container_resource(name):
            kind = "limits" if name in resources.limits else "requests"
            detail = "must be cpu, memory, ephemeral-storage, hugepages-<size>, or carry a domain of its own"
            yield invalid(f"{path}.{kind}[{shown_key(name)}]", name, detail)
    yield from unique(
        (below, f"{claim.name}/{claim.request}") for below, claim in indexed(f"{path}.claims", resources.claims)
    )
    for below, claim in indexed(f"{path}.claims", resources.claims):
        if not claim.name:
            yield required(f"{below}.name")
        elif claim.name not in claims:
            yield not_found(f"{below}.name", claim.name)


def validate_pod_resources(resources: ResourceRequirements, path: str) -> Errors:
    """`spec.resources`."""
    if resources.claims:
        yield forbidden(f"{path}.claims", "may only be set on containers")
    yield from _requirements(resources, path)
    for name in {**resources.limits, **resources.requests}:
        if not is_pod_level_resource(name):
            kind = "limits" if name in resources.limits else "requests"
            yield not_supported(f"{path}.{kind}[{shown_key(name)}]", name, ["cpu", "memory", "hugepages-<size>"])


def validate_resource_list(resources: ResourceList, path: str) -> Errors:
    """Names and quantities."""
    for name, quantity in resources.items():
        below = f"{path}[{shown_key(name)}]"
        if problem := qualified_name_problem(name):
            yield invalid(below, name, problem)
        yield from validate_quantity(below, quantity)
        value = _value(quantity)
        if value is not None and _must_be_whole(name) and value.denominator != 1:
            yield invalid(below, quantity, "must be an integer")


def _requirements(resources: ResourceRequirements, path: str) -> Errors:
    limits, requests = resources.limits, resources.requests
    # A request that equals its limit was likely copied from it: what is wrong with it is said of the limit.
    own_requests = {name: quantity for name, quantity in requests.items() if quantity != limits.get(name)}
    yield from validate_resource_list(limits, f"{path}.limits")
    yield from validate_resource_list(own_requests, f"{path}.requests")
    for name, quantity in own_requests.items():
        request, limit = _value(quantity), _value(limits.get(name))
        if request is None:
            continue
        below = f"{path}.requests[{shown_key(name)}]"
        if limit is not None and request > limit:
            yield invalid(below, quantity, f"must be less than or equal to the {shown_key(name)} limit")
        elif not _may_overcommit(name) and request != limit:
            yield invalid(below, quantity, f"must be equal to the {shown_key(name)} limit: it cannot be overcommitted")


def _value(quantity: Quantity | None) -> Fraction | None:
    try:
        return None if quantity is None else parse_quantity(quantity)
    except QuantityError:
        return None


def _is_native(name: str) -> bool:
    return "/" not in name or _KUBERNETES_DOMAIN in name


def _is_container_resource(name: str) -> bool:
    return name in _CONTAINER_RESOURCES or name.startswith(HUGEPAGES_PREFIX) or "/" in name


def _may_overcommit(name: str) -> bool:
    return _is_native(name) and not name.startswith(HUGEPAGES_PREFIX)


def _must_be_whole(name: str) -> bool:
    return not _is_native(name)


def validate_resize_policy(container: Container, pod_restart_policy: str, path: str) -> Errors:
    """`resizePolicy` of a container."""
    seen: set[str] = set()
    for below, policy in indexed(path, container.resize_policy):
        if policy.resource_name not in _RESIZABLE_RESOURCES:
            yield not_supported(f"{below}.resourceName", policy.resource_name, _RESIZABLE_RESOURCES)
        elif policy.resource_name in seen:
            yield duplicate(f"{below}.resourceName", policy.resource_name)
        seen.add(policy.resource_name)
        if pod_restart_policy == "Never" and policy.restart_policy != "NotRequired":
            yield not_supported(f"{below}.restartPolicy", policy.restart_policy, ["NotRequired"])


def validate_init_resize_policy(container: Container, path: str) -> Errors:
    """`resizePolicy` of an init container that is no sidecar: it runs once, so no change may restart it."""
    for below, policy in indexed(path, container.resize_policy):
        if policy.restart_policy != "NotRequired":
            yield not_supported(f"{below}.restartPolicy", policy.restart_policy, ["NotRequired"])


def validate_divisor(reference: ResourceFieldSelector, path: str) -> Errors:
    """The unit in which the downward API shows a resource, in its canonical form. 0 stands for 1."""
    try:
        divisor = "0" if reference.divisor is None else str(parse_amount(reference.divisor))
    except QuantityError as error:
        yield invalid(path, reference.divisor, str(error))
        return
    units = _CPU_DIVISORS if reference.resource.endswith(".cpu") else _BYTE_DIVISORS
    if divisor not in ("0", *units):
        yield not_supported(path, reference.divisor, units)
