"""Removed files that a pod's containers have open, as part of what the pod takes of the disk. Blocks: for a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ipc.k8s.eviction.usage import DiskUsage
from workers.kubecontainer.runtime import ContainerProcess
from workers.proc.procfs import start_ticks
from workers.userns.steps.unlinked_files import unlinked_files
from workers.userns.unshare import Unshare
from workers.volumemanager.plugins.empty_dir import empty_dir_place

DEADLINE_S: Final = 20.0
"""For the descriptors of all containers that are looked at together, in seconds."""


class RemovedFiles(msgspec.Struct, frozen=True):
    """Use of one pod, by name."""

    containers: Mapping[str, DiskUsage] = {}
    volumes: Mapping[str, DiskUsage] = {}


NONE: Final = RemovedFiles()


class Holder(msgspec.Struct, frozen=True):
    """A container that runs."""

    process: ContainerProcess
    cgroup: str
    """Directory of its own cgroup; empty without one."""


class Holders(msgspec.Struct, frozen=True):
    """A pod's containers that run, by name."""

    uid: str
    containers: Mapping[str, Holder]


def removed_files(pods: Sequence[Holders], pods_dir: str, unshare: Unshare) -> list[RemovedFiles]:
    """Files of each pod. Raises UnshareError."""
    asked = [
        {name: (each.process.pid, each.cgroup) for name, each in pod.containers.items() if _is_there(each.process)}
        for pod in pods
    ]
    steps = [
        (unlinked_files.__name__, {"containers": containers, "empty_dirs": _empty_dirs(pods_dir, pod.uid)})
        for pod, containers in zip(pods, asked, strict=True)
        if containers
    ]
    answers = iter(msgspec.structs.replace(unshare, deadline_s=DEADLINE_S).run(steps) if steps else ())
    return [RemovedFiles(*map(_usages, next(answers))) if containers else NONE for containers in asked]


def _is_there(process: ContainerProcess) -> bool:
    return bool(process.start_ticks) and start_ticks(process.pid) == process.start_ticks


def _usages(found: Mapping[str, Sequence[int]]) -> dict[str, DiskUsage]:
    return {name: DiskUsage(used, inodes) for name, (used, inodes) in found.items()}


def _empty_dirs(pods_dir: str, uid: str) -> str:
    """Part of the path of every emptyDir of the pod, up to its name: a mount shows its file system's own path."""
    return "".join(f"/{step}" for step in empty_dir_place(pods_dir, uid, "").steps[:-1]) + "/"
