"""What a pod and its containers ask of the node, as numbers. Pure.

Mirrors PodRequests and PodLimits (component-helpers resource/helpers.go): pod-level resources count for the pod where
they are set, its containers together everywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ipc.api import Container, Pod, ResourceList
from ipc.api.default_resources import HUGEPAGES_PREFIX, aggregate_requests, is_pod_level_resource
from ipc.api.quantity import parse_quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
COMPUTE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)


def amount(resources: ResourceList, name: str) -> int:
    """In thousandths for cpu, in whole units else; rounded up (Quantity.MilliValue, Value). 0 when it is not given."""
    if name not in resources:
        return 0
    return math.ceil(parse_quantity(resources[name]) * (1000 if name == CPU else 1))


def pod_requests(pod: Pod) -> Mapping[str, int]:
    """What it takes of the node, of `COMPUTE` and huge pages; nothing of what it does not ask for."""
    together = {name: str(found) for name, found in aggregate_requests(pod.spec).items()}
    own = pod.spec.resources.requests if pod.spec.resources is not None else {}
    pod_level = {name: quantity for name, quantity in own.items() if is_pod_level_resource(name)}
    asked = {name: quantity for name, quantity in {**together, **pod_level}.items() if _counts(name)}
    return {name: found for name in asked if (found := amount(asked, name))}


def _counts(name: str) -> bool:
    """Other resources are counted where somebody manages them."""
    return name in COMPUTE or name.startswith(HUGEPAGES_PREFIX)


def memory_request(container: Container) -> int:
    """In bytes."""
    return amount(container.resources.requests, MEMORY)
