"""Order in which pods are evicted (pkg/kubelet/eviction/helpers.go, orderedBy and the rank functions).

Different on purpose: inodes are compared as they are; upstream takes the request for bytes of storage from their
number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import MEMORY_MEDIUM, Volume
from ipc.k8s.eviction.file_systems import Layout, Part, parts_that_count
from ipc.k8s.eviction.signals import EPHEMERAL_STORAGE, INODES, MEMORY, PIDS, Signal, resource_of
from ipc.k8s.eviction.usage import DiskUsage, PodUsage
from ipc.k8s.podresources.pod_requests import pod_requests
from ipc.k8s.scheduling.priority import pod_priority

UsageOf = Callable[[Pod], PodUsage | None]
Key = Callable[[Pod], object]
"""The smaller, the earlier the pod goes. One whose figures are not known goes before all others."""
_UNKNOWN: Final = (0, 0)


def rank(pods: Iterable[Pod], signal: Signal, layout: Layout, usage: Mapping[str, PodUsage]) -> tuple[Pod, ...]:
    """The pods, the one to evict first in front. ``usage`` by uid."""

    def of(pod: Pod) -> PodUsage | None:
        return usage.get(pod.metadata.uid)

    resource, parts = resource_of(signal), parts_that_count(signal, layout)
    keys: Mapping[str, Sequence[Key]] = {
        MEMORY: (exceeds_memory_request(of), pod_priority, most_memory(of)),
        PIDS: (pod_priority, most_processes(of)),
        EPHEMERAL_STORAGE: (exceeds_disk_request(of, parts, resource), pod_priority, most_disk(of, parts)),
        INODES: (exceeds_disk_request(of, parts, resource), pod_priority, most_inodes(of, parts)),
    }
    return ordered(pods, keys[resource])


def ordered(pods: Iterable[Pod], keys: Sequence[Key]) -> tuple[Pod, ...]:
    """Order pods by the first key, ties by the next one. Those that are equal in all keep their order."""
    return tuple(sorted(pods, key=lambda pod: tuple(key(pod) for key in keys)))


def exceeds_memory_request(of: UsageOf) -> Key:
    """exceedMemoryRequests."""
    return _known(of, lambda pod, usage: (usage.memory or 0) <= _request(pod, MEMORY))


def most_memory(of: UsageOf) -> Key:
    """memory: above the request."""
    return _known(of, lambda pod, usage: _request(pod, MEMORY) - (usage.memory or 0))


def most_processes(of: UsageOf) -> Key:
    """process."""
    return _known(of, lambda pod, usage: -(usage.processes or 0))


def exceeds_disk_request(of: UsageOf, parts: frozenset[Part], resource: str) -> Key:
    """exceedDiskRequests; nobody requests inodes."""

    def key(pod: Pod, usage: PodUsage) -> bool:
        used, inodes = disk_usage(pod, usage, parts)
        if resource == INODES:
            return inodes <= 0
        return used <= _request(pod, EPHEMERAL_STORAGE)

    return _known(of, key)


def most_disk(of: UsageOf, parts: frozenset[Part]) -> Key:
    """disk: bytes above the request."""
    return _known(of, lambda pod, usage: _request(pod, EPHEMERAL_STORAGE) - disk_usage(pod, usage, parts)[0])


def most_inodes(of: UsageOf, parts: frozenset[Part]) -> Key:
    """disk, of inodes."""
    return _known(of, lambda pod, usage: -disk_usage(pod, usage, parts)[1])


def _known(of: UsageOf, key: Callable[[Pod, PodUsage], int | Fraction]) -> Key:
    def with_unknown(pod: Pod) -> tuple[int, int | Fraction]:
        usage = of(pod)
        return _UNKNOWN if usage is None else (1, key(pod, usage))

    return with_unknown


def disk_usage(pod: Pod, usage: PodUsage, parts: frozenset[Part]) -> tuple[int, int]:
    """Bytes and inodes of those parts (podDiskUsage). What is not known counts as nothing. Different on purpose: files
    that were mounted into containers count with the volumes, whoever fills the disk by them."""
    local = {volume.name for volume in pod.spec.volumes if _is_local(volume)}
    found: list[DiskUsage | None] = []
    if Part.ROOTFS in parts:
        found += [container.rootfs for container in usage.containers]
    if Part.LOGS in parts:
        found += [container.logs for container in usage.containers]
    if Part.VOLUMES in parts:
        found += [disk for name, disk in usage.volumes.items() if name in local]
        found.append(usage.files)
    known = [disk for disk in found if disk is not None]
    return sum(disk.used or 0 for disk in known), sum(disk.inodes or 0 for disk in known)


def _is_local(volume: Volume) -> bool:
    """localVolumeNames."""
    is_empty_dir = volume.empty_dir is not None and volume.empty_dir.medium != MEMORY_MEDIUM
    return is_empty_dir or volume.host_path is not None or volume.config_map is not None


def _request(pod: Pod, resource: str) -> int:
    return pod_requests(pod).get(resource, 0)
