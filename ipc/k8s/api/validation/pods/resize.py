"""Changes of resources that a running pod can be given in place.

Source: pkg/apis/core/validation ValidatePodResize, validateContainerResize. Different on purpose: what the function
forbids of other fields is not looked at, for an edited manifest may change them at the same time.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from ipc.k8s.api.errors import FieldError, forbidden, invalid
from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.base import ResourceList
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.validation.checks import Errors
from ipc.k8s.podresources.allocation import RESIZABLE
from ipc.k8s.podresources.qos import compute_pod_qos

_OF_INIT: Final = " for init or sidecar containers"


def validate_pod_resize(old: Pod, new: Pod) -> Errors:
    """Findings about the resources of two pods, whose containers are the same in the same order; nothing where none
    of them changes."""
    if old.spec is new.spec:
        return
    if new.spec.os is not None and new.spec.os.name == "windows":
        yield forbidden("", "windows pods cannot be resized")
    if compute_pod_qos(old) != compute_pod_qos(new):
        yield invalid("spec", "", "Pod QOS Class may not change as a result of resizing")
    misplaced = [
        *_misplaced("containers", old.spec.containers, new.spec.containers),
        *_misplaced("initContainers", old.spec.init_containers, new.spec.init_containers),
    ]
    if misplaced:  # what follows compares containers by their place
        yield from misplaced
        return
    yield from _containers("spec.initContainers", old.spec.init_containers, new.spec.init_containers, _OF_INIT)
    yield from _containers("spec.containers", old.spec.containers, new.spec.containers, "")
    if old.spec.resources is not None:
        yield from _resources("spec.resources", old.spec.resources, new.spec.resources or ResourceRequirements())
        if _has_other_fixed(old.spec.resources, new.spec.resources or ResourceRequirements()):
            yield forbidden("spec", "only cpu and memory resources are mutable at pod-level")


def _misplaced(name: str, before: tuple[Container, ...], after: tuple[Container, ...]) -> Errors:
    """Containers that are others than before, or elsewhere (validatePodResizeContainerOrdering)."""
    if len(before) != len(after):
        yield forbidden(f"spec.{name}", f"{name} may not be added or removed on resize")
        return
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.name != new.name:
            yield forbidden(f"spec.{name}[{index}].name", f"{name} may not be renamed or reordered on resize")


def _containers(path: str, before: tuple[Container, ...], after: tuple[Container, ...], of_kind: str) -> Errors:
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        yield from _resources(f"{path}[{index}].resources", old.resources, new.resources)
        if _has_other_fixed(old.resources, new.resources):
            where = f"{path}[{index}]" if of_kind else "spec"
            yield forbidden(where, f"only cpu and memory resources{of_kind} are mutable")


def _resources(path: str, old: ResourceRequirements, new: ResourceRequirements) -> Iterator[FieldError]:
    if _is_removed(old.limits, new.limits):
        yield forbidden(f"{path}.limits", "resource limits cannot be removed")
    if _is_removed(old.requests, new.requests):
        yield forbidden(f"{path}.requests", "resource requests cannot be removed")


def _is_removed(old: ResourceList, new: ResourceList) -> bool:
    """Whether there was an amount of a resource that can be resized and is none."""
    return any(name in old and name not in new for name in RESIZABLE)


def _has_other_fixed(old: ResourceRequirements, new: ResourceRequirements) -> bool:
    """Whether resources change that no running container can be given more or less of."""
    return (_fixed(old.limits), _fixed(old.requests)) != (_fixed(new.limits), _fixed(new.requests))


def _fixed(resources: ResourceList) -> dict[str, Fraction]:
    return {name: parse_quantity(quantity) for name, quantity in resources.items() if name not in RESIZABLE}
