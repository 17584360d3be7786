"""Limits of a pod's local storage, and the message of a pod that exceeds them. Pure.

Mirrors localStorageEviction (pkg/kubelet/eviction/eviction_manager.go) and its texts (helpers.go). A limit of zero is
none for a volume, as upstream. Different on purpose: a container that has ended counts with what it has left, as long
as it is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.k8s.api.default_resources import aggregate_limits
from ipc.k8s.api.quantity import Amount, parse_amount
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import MEMORY_MEDIUM, Volume
from ipc.k8s.eviction.usage import DiskUsage
from ipc.k8s.podresources.pod_requests import EPHEMERAL_STORAGE
from ipc.link.metrics.kubelet import EVICTION_SIGNALS
from workers.eviction.removed_files import RemovedFiles
from workers.fs.disk_usage import MAX_FILES

MAX_S: Final = 45.0
"""Deadline for counting one large tree, in seconds: less than that of any work in files."""
_SIGNALS: Final = {"Usage": EVICTION_SIGNALS[0], "Container": EVICTION_SIGNALS[1], "Pod": EVICTION_SIGNALS[2]}
UNCOUNTED: Final = (
    f"It has more files than are counted ({MAX_FILES}, or as many as take {MAX_S:g} s): that counts as exceeded. "
)
"""Part of the message of a pod whose usage was not counted to the end."""


class StorageUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Usage in bytes by name; None where there are more files than are counted (`workers.fs.disk_usage`). Volumes and
    containers that need not be measured are absent."""

    volumes: Mapping[str, int | None]
    containers: Mapping[str, int | None]
    """Log, writable layer and files that it was given."""
    files: int = 0
    """Files of the pod that all of its containers may write to."""


def with_removed_files(usage: StorageUsage, removed: RemovedFiles) -> StorageUsage:
    """The usage with files that are open and have no name any more, of volumes and containers that are measured. An
    ephemeral container's count for the pod."""
    others = (used.used or 0 for name, used in removed.containers.items() if name not in usage.containers)
    return msgspec.structs.replace(
        usage,
        volumes=_with(usage.volumes, removed.volumes),
        containers=_with(usage.containers, removed.containers),
        files=usage.files + sum(others),
    )


def _with(usage: Mapping[str, int | None], removed: Mapping[str, DiskUsage]) -> dict[str, int | None]:
    found = {name: removed[name].used or 0 if name in removed else 0 for name in usage}
    return {name: None if used is None else used + found[name] for name, used in usage.items()}


def disk_volumes(pod: Pod) -> tuple[Volume, ...]:
    """The pod's emptyDirs on the disk."""
    return tuple(v for v in pod.spec.volumes if v.empty_dir is not None and v.empty_dir.medium != MEMORY_MEDIUM)


def volumes_to_measure(pod: Pod) -> tuple[str, ...]:
    """Names of emptyDirs to measure: those with a limit, and all when the pod has one."""
    is_all = _pod_limit(pod) is not None
    return tuple(volume.name for volume in disk_volumes(pod) if is_all or _size_limit(volume) is not None)


def containers_to_measure(pod: Pod) -> tuple[str, ...]:
    """Names of containers to measure: all when the pod has a limit, else none."""
    return tuple(c.name for c in _containers(pod)) if _pod_limit(pod) is not None else ()


def exceeded_limit(pod: Pod, usage: StorageUsage) -> str:
    """Message of the pod's eviction; empty while it is within all its limits."""
    return next(_exceeded(pod, usage), "")


def signal_of(message: str) -> str:
    """Label ``eviction_signal`` of a message of `exceeded_limit` (pkg/kubelet/eviction/eviction_manager.go)."""
    return _SIGNALS.get(message.split(" ", 1)[0], EVICTION_SIGNALS[1])


def total(used: Iterable[int | None]) -> int | None:
    """Sum in bytes; None when any of them is."""
    known = tuple(used)
    return None if None in known else sum(one for one in known if one is not None)


def _exceeded(pod: Pod, usage: StorageUsage) -> Iterator[str]:
    for used, limit, words in _checks(pod, usage):
        if used is None:
            yield words + UNCOUNTED
        elif used > limit.value:
            yield words


def _checks(pod: Pod, usage: StorageUsage) -> Iterator[tuple[int | None, Amount, str]]:
    """Usage, limit, and the message when that is exceeded."""
    for volume in disk_volumes(pod):
        if (limit := _size_limit(volume)) is not None:
            words = f"Usage of EmptyDir volume {quoted(volume.name)} exceeds the limit {quoted(str(limit))}. "
            yield usage.volumes.get(volume.name, 0), limit, words
    if (limit := _pod_limit(pod)) is not None:
        words = f"Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
        yield total((*usage.volumes.values(), *usage.containers.values(), usage.files)), limit, words
    for container in pod.spec.containers:
        if (limit := _container_limit(container)) is not None:
            words = f"Container {container.name} exceeded its local ephemeral storage limit {quoted(str(limit))}. "
            yield usage.containers.get(container.name, 0), limit, words


def _size_limit(volume: Volume) -> Amount | None:
    given = volume.empty_dir.size_limit if volume.empty_dir is not None else None
    limit = parse_amount(given) if given is not None else None
    return limit if limit is not None and limit.value > 0 else None


def _container_limit(container: Container) -> Amount | None:
    given = container.resources.limits.get(EPHEMERAL_STORAGE)
    return parse_amount(given) if given is not None else None


def _pod_limit(pod: Pod) -> Amount | None:
    """Limit of the pod's containers together (PodLimits, component-helpers resource/helpers.go), None without one. Each
    sync asks, and most pods have none: nothing is added up for them."""
    if not any(EPHEMERAL_STORAGE in c.resources.limits for c in _containers(pod)):
        return None
    return aggregate_limits(pod.spec).get(EPHEMERAL_STORAGE)


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)
