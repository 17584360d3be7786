"""Changes of resources that a kubelet would make while the container runs, and that restart it here. Pure.

Upstream resizes cpu and memory in place unless the container's resizePolicy says RestartContainer (KEP-1287).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.api.v1.container import Container
from ipc.api.v1.pod import Pod
from ipc.api.validation.containers import all_containers
from ipc.podresources.pod_requests import CPU, MEMORY

_RESTART: Final = "RestartContainer"


def restarts_for_resize(before: Pod, after: Pod) -> Iterator[str]:
    """One warning for each container that an edit restarts against its resizePolicy."""
    known = {container.name: container for _, container in all_containers(before.spec, "spec")}
    for path, container in all_containers(after.spec, "spec"):
        old = known.get(container.name)
        names = [name for name in (CPU, MEMORY) if old is not None and _is_resized(old, container, name)]
        if names:
            what = f"{path}.resources: {' and '.join(names)} changed"
            yield f"{what}: resizing in place is not built yet: {container.name} is restarted, against its resizePolicy"


def _is_resized(before: Container, after: Container, name: str) -> bool:
    policies = {policy.resource_name: policy.restart_policy for policy in after.resize_policy}
    return policies.get(name) != _RESTART and _amounts(before, name) != _amounts(after, name)


def _amounts(container: Container, name: str) -> tuple[object, object]:
    return container.resources.requests.get(name), container.resources.limits.get(name)
