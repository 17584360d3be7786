"""Order of a resize: containers that run get other amounts of cpu and memory. Pure.

Mirrors markContainerForUpdate, doPodResizeAction and validatePodResizeAction
(pkg/kubelet/kuberuntime/kuberuntime_manager.go); which containers are resized at all, `ipc.k8s.kubecontainer.resize`
says.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.resize import ContainerUpdate, changed_resources
from ipc.k8s.podresources.allocation import ResourceAmounts
from ipc.k8s.podresources.cgroup_config import NO_LIMIT, CgroupConfig
from ipc.k8s.podresources.pod_requests import CPU, MEMORY


class PodResize(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one sync resizes."""

    memory: tuple[ContainerUpdate, ...] = ()
    """In this order: first those that get less."""
    cpu: tuple[ContainerUpdate, ...] = ()
    restarted: bool = False
    """A container restarts for its resources: the pod's cgroup follows (UpdatePodResources)."""
    pod_level: bool = False
    """Resources of the pod as a whole change (UpdatePodLevelResources)."""

    def of(self, name: str) -> tuple[ContainerUpdate, ...]:
        """Updates of that resource."""
        return self.memory if name == MEMORY else self.cpu

    def concerns(self, name: str) -> bool:
        """Whether cgroups change in that resource, or may."""
        return bool(self.of(name)) or self.restarted or self.pod_level


NO_RESIZE: Final = PodResize()


def pod_resize(updates: Iterable[ContainerUpdate], *, restarted: bool, pod_level: bool) -> PodResize:
    """Updates in the order of the containers, those that get less before them and the last of these first, as
    upstream."""
    every = tuple(updates)
    return PodResize(memory=_ordered(every, MEMORY), cpu=_ordered(every, CPU), restarted=restarted, pod_level=pod_level)


def _ordered(updates: tuple[ContainerUpdate, ...], name: str) -> tuple[ContainerUpdate, ...]:
    concerned = [update for update in updates if name in changed_resources(update.current, update.desired)]
    less = [update for update in concerned if _growth(update, name) < 0]
    return (*reversed(less), *(update for update in concerned if update not in less))


def _growth(update: ContainerUpdate, name: str) -> int:
    """By the limit where that changes, else by the request."""
    old_limit, old_request = _pair(update.current, name)
    new_limit, new_request = _pair(update.desired, name)
    return new_limit - old_limit or new_request - old_request


def _pair(amounts: ResourceAmounts, name: str) -> tuple[int, int]:
    if name == MEMORY:
        return amounts.memory_limit, amounts.memory_request
    return amounts.cpu_limit, amounts.cpu_request


# --- the order of what is done -----------------------------------------------------------------------------------


class Part(enum.Enum):
    """Limits and requests of a cgroup are written apart."""

    LIMIT = "limit"
    REQUEST = "request"


class ResizeStep(msgspec.Struct, frozen=True):
    """One step of a resize."""

    resource: str
    pod_cgroup: CgroupConfig | None = None
    """Values to write; None: the containers' turn."""
    containers: tuple[ContainerUpdate, ...] = ()


def resize_steps(resize: PodResize, current: CgroupConfig | None, desired: CgroupConfig) -> tuple[ResizeStep, ...]:
    """Memory, then cpu. The pod's cgroup grows before its containers do and shrinks after them, limits outside of
    requests. ``current`` is None where the pod has no cgroup. A limit that ``desired`` says nothing of stays: upstream
    removes none."""
    return tuple(
        step for name in (MEMORY, CPU) if resize.concerns(name) for step in _steps(resize, name, current, desired)
    )


def _steps(resize: PodResize, name: str, current: CgroupConfig | None, desired: CgroupConfig) -> Iterator[ResizeStep]:
    limit, request = (_change(name, part, current, desired) for part in (Part.LIMIT, Part.REQUEST))
    yield from _cgroup_steps(name, desired, ((Part.LIMIT, limit > 0), (Part.REQUEST, request > 0)))
    if resize.of(name):
        yield ResizeStep(resource=name, containers=resize.of(name))
    yield from _cgroup_steps(name, desired, ((Part.REQUEST, request < 0), (Part.LIMIT, limit < 0)))


def _cgroup_steps(name: str, desired: CgroupConfig, parts: Iterable[tuple[Part, bool]]) -> Iterator[ResizeStep]:
    return (ResizeStep(resource=name, pod_cgroup=_values(name, part, desired)) for part, is_due in parts if is_due)


def _values(name: str, part: Part, desired: CgroupConfig) -> CgroupConfig:
    if name == MEMORY:
        return CgroupConfig(memory=desired.memory)
    if part is Part.LIMIT:
        return CgroupConfig(cpu_quota=desired.cpu_quota, cpu_period=desired.cpu_period)
    return CgroupConfig(cpu_shares=desired.cpu_shares)


def _change(name: str, part: Part, current: CgroupConfig | None, desired: CgroupConfig) -> int:
    """Positive when the cgroup gets more, negative when it gets less. Requests of memory are not written."""
    if current is None or (name, part) == (MEMORY, Part.REQUEST):
        return 0
    old, new = (_value(name, part, config) for config in (current, desired))
    if new is None or (old is None and new == NO_LIMIT):
        return 0
    return new - (old or 0) if new != NO_LIMIT else 1


def _value(name: str, part: Part, config: CgroupConfig) -> int | None:
    if name == MEMORY:
        return config.memory
    return config.cpu_quota if part is Part.LIMIT else config.cpu_shares


# --- memory that is in use ---------------------------------------------------------------------------------------


def limit_problem(
    updates: Iterable[ContainerUpdate],
    usage: Mapping[str, int | None],
    pod_limits: tuple[int | None, int | None],
    pod_usage: int | None,
) -> str:
    """Why memory limits must not be lowered (validatePodResizeAction), empty when they may. ``usage`` in bytes by
    container, ``pod_limits`` the pod's old and new one. Best effort: by the time of the write it may be more."""
    old, new = pod_limits
    found = [*_too_low("pod", old or 0, new or 0, pod_usage, "pod")]
    for update in updates:
        subject = f'container "{update.name}"'
        found += _too_low(
            subject, update.current.memory_limit, update.desired.memory_limit, usage.get(update.name), subject
        )
    return f"cannot decrease memory limits: {'; '.join(found)}" if found else ""


def _too_low(subject: str, old: int, new: int, usage: int | None, named: str) -> Iterator[str]:
    if not new or (old and new >= old):
        return
    if usage is None:
        yield f"missing {named} memory usage"
    elif usage >= new:
        yield f"attempting to set {subject} memory limit ({new}) below current usage ({usage})"
