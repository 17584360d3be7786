"""Resources of pods on disk: those that each was allocated, devices among them, and those given to what runs.

Two files, as upstream's (pkg/kubelet/allocation/state/state_checkpoint.go), each replaced as a whole. With the
allocated ones lie the conditions of resizes, which upstream finds in the API. A file that cannot be used costs what
it is for: a pod is allocated what its manifest asks for now, and what runs is looked at (SyncPod.unsure_resources).

That a pod has come or is gone is written within a second and not waited for: many pods are one write, and one flush. A
power cut may leave the file as it was before, which says no less of all others.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from ipc.host.atomic_file import replace_file, write_atomically
from ipc.host.clock import Clock
from ipc.host.private_directories import make_private
from ipc.host.state_file import usable_state
from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.status import PodCondition
from ipc.k8s.podresources.allocation import PodResourceInfo
from ipc.k8s.podresources.devices import NOTHING, Allocated
from supervisor.state.checked_file import decode_checked, encode_checked
from supervisor.state.throttled_saver import ThrottledSaver, Write

ALLOCATED_FILE: Final = "allocated_pods_state"
ACTUATED_FILE: Final = "actuated_pods_state"
VERSION: Final = 1
"""Version of both formats. Another version is not trusted, whatever it says."""
PERIOD_S: Final = 1.0
"""Seconds for which a change waits that is not urgent."""
RETRY_S: Final = 5.0
MAX_FILE_BYTES: Final = 64 << 20
"""Largest file that is read."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class PodResources(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Resources of one pod, as far as they outlive the agent."""

    allocated: PodResourceInfo = PodResourceInfo()
    actuated: Mapping[str, ResourceRequirements] = {}
    """Resources that its containers and sandboxes were given while they ran, by id."""
    conditions: tuple[PodCondition, ...] = ()
    """PENDING before IN_PROGRESS, those that there are."""
    devices: Allocated = NOTHING
    """Devices that its containers have."""


NONE: Final = PodResources()


class _Allocated(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    allocated: PodResourceInfo
    conditions: tuple[PodCondition, ...] = ()
    devices: Allocated = NOTHING


class ResourcesOwner(Protocol):
    """Owner of the resources."""

    version: int
    urgent_version: int
    """The newest change that is to be written at once."""

    def all_resources(self) -> Mapping[str, PodResources]: ...


_AllocatedPods = dict[str, _Allocated]
_ActuatedPods = dict[str, dict[str, ResourceRequirements]]


def save(directory: Path, pods: Mapping[str, PodResources], written: dict[str, bytes], *, durable: bool = True) -> None:
    """Replace the files that would not be what they are; ``written``: payloads that an earlier call has written, by
    file. Not ``durable``: after a power cut the old one may be there. Raises OSError; each of them is whole then, the
    old or the new one."""
    make_private(directory)
    allocated = {uid: _Allocated(pod.allocated, pod.conditions, pod.devices) for uid, pod in pods.items()}
    actuated = {uid: pod.actuated for uid, pod in pods.items() if pod.actuated}
    replace = write_atomically if durable else replace_file
    for file, payload in ((ALLOCATED_FILE, allocated), (ACTUATED_FILE, actuated)):
        data = msgspec.json.encode(payload)
        if data != written.get(file):
            replace(directory / file, encode_checked(VERSION, data))
            written[file] = data


def load(directory: Path) -> dict[str, PodResources]:
    """Resources as they were saved; none of a file that is missing or cannot be used: that is logged."""
    allocated = _load(directory / ALLOCATED_FILE, _AllocatedPods)
    actuated = _load(directory / ACTUATED_FILE, _ActuatedPods)
    return {
        uid: PodResources(
            allocated=pod.allocated,
            conditions=pod.conditions,
            devices=pod.devices,
            actuated=actuated.get(uid, {}),
        )
        for uid, pod in allocated.items()
    }


def _load(path: Path, kind: type[dict[str, T]]) -> dict[str, T]:
    def decode(data: bytes) -> dict[str, T]:
        pods = msgspec.json.decode(decode_checked(VERSION, data), type=kind)
        _check_quantities(pods)
        return pods

    return usable_state(path, MAX_FILE_BYTES, decode, "resources of pods", log) or {}


def _check_quantities(pods: Mapping[str, object]) -> None:
    """Raises ValueError."""
    for pod in pods.values():
        if isinstance(pod, _Allocated):
            info = pod.allocated
            given = [*info.container_resources.values(), info.pod_level_resources or ResourceRequirements()]
        else:
            given = list(pod.values()) if isinstance(pod, dict) else []
        for quantity in (q for each in given for q in (*each.limits.values(), *each.requests.values())):
            parse_quantity(quantity)


class ResourcesCheckpoint:
    """When the files are written (`supervisor.state.throttled_saver`)."""

    def __init__(self, directory: Path, clock: Clock, ended: Callable[[], None]) -> None:
        """``ended`` is called after every write."""
        self._directory = directory
        self._written: dict[str, bytes] = {}
        self._saver = ThrottledSaver[int](
            "resources of pods", 0, clock, log, period_s=PERIOD_S, retry_s=RETRY_S, ended=ended
        )

    def restore(self) -> dict[str, PodResources]:
        """Resources that an earlier run of the agent has saved."""
        return load(self._directory)

    def is_kept(self, version: int) -> bool:
        """Whether that version is on disk, or writes fail."""
        return self._saver.is_kept(lambda written: version <= written)

    def keep(self, resources: ResourcesOwner, *, is_urgent: bool) -> None:
        """Write what is new. To be called after every event, and every second. ``is_urgent``: somebody waits for it."""
        if self._saver.is_due(resources.version):
            urgent = is_urgent or resources.urgent_version > self._saver.written
            self._saver.keep(lambda: resources.version, self._write(resources), is_urgent=urgent)

    def write_again(self) -> None:
        """The file has gone away: the next `keep` writes it."""
        self._written = {}  # another one: a write that is under way has the old one
        self._saver.write_again()

    async def close(self, resources: ResourcesOwner) -> None:
        """Write the last ones, if the disk takes them in time."""
        await self._saver.close(lambda: resources.version, self._write(resources))

    def _write(self, resources: ResourcesOwner) -> Callable[[int], Write]:
        durable = resources.urgent_version > self._saver.written or not self._written
        return lambda _: functools.partial(
            save, self._directory, resources.all_resources(), self._written, durable=durable
        )
