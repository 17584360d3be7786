"""Cgroups (v2) of containers and pods: where they are, what they limit, and other limits for a pod's.

A pod's cgroup is made by Podman where systemd manages cgroups; it is this user's, like its files. Mirrors
GetPodCgroupConfig and SetPodCgroupConfig (pkg/kubelet/cm/pod_container_manager_linux.go).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ipc.k8s.podresources.cgroup_config import NO_LIMIT, CgroupConfig, shares_to_weight, weight_to_shares
from workers.kubecontainer.slices import CgroupReading
from workers.proc.procfs import read_once

ROOT: Final = "/sys/fs/cgroup"
_MAX_BYTES: Final = 16 * 1024
_V2: Final = "0::"


def own_cgroup(pid: int, container_id: str) -> str:
    """Directory of the container's own cgroup, by its first process; empty without one: it is in its parent's."""
    return cgroup_directory(_of_process(pid), container_id)


def pod_cgroup(pid: int, pod_id: str) -> str:
    """Directory of the cgroup of a Podman pod, by the process of its infra container; empty without one."""
    return cgroup_directory(_of_process(pid), f"libpod_pod_{pod_id}")


def _of_process(pid: int) -> str:
    return read_once(pid, "cgroup", _MAX_BYTES).decode(errors="surrogateescape") if pid else ""


def cgroup_directory(text: str, name: str) -> str:
    """Directory by /proc/PID/cgroup. Of nested ones (crun puts the processes into ``container`` below it) the outermost
    that has that in its name: ``libpod-<id>.scope``."""
    path = next((line.removeprefix(_V2) for line in text.splitlines() if line.startswith(_V2)), "")
    if not name or name not in path:
        return ""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    for end, part in enumerate(parts, start=1):
        if name in part and ".." not in parts:
            return "/".join((ROOT, *parts[:end]))
    return ""


def memory_usage(directory: str) -> int | None:
    """Bytes in use; None where that is not known."""
    return _number(_read(directory, "memory.current"))


def oom_kills(directory: str) -> int | None:
    """Processes that were killed for want of memory, in it and below; None where that is not counted."""
    words = _read(directory, "memory.events").split()
    return _number(dict(zip(words[::2], words[1::2], strict=False)).get("oom_kill", ""))


def read_config(directory: str) -> CgroupConfig:
    """Limits and weight as they are; None where there is no controller or no limit."""
    quota, _, period = _read(directory, "cpu.max").partition(" ")
    weight = _number(_read(directory, "cpu.weight"))
    return CgroupConfig(
        memory=_number(_read(directory, "memory.max")),
        cpu_shares=weight_to_shares(weight) if weight is not None else None,
        cpu_quota=_number(quota),
        cpu_period=_number(period),
    )


def read_cgroup(directory: str) -> CgroupReading:
    """Nothing is known of a cgroup that is not there."""
    return CgroupReading(config=read_config(directory), memory_usage=memory_usage(directory))


def write_config(directory: str, config: CgroupConfig) -> None:
    """Write the values that are given. Raises OSError."""
    for file, text in _files(config):
        with open(os.path.join(directory, file), "w") as opened:
            opened.write(text)


def _files(config: CgroupConfig) -> Iterator[tuple[str, str]]:
    if config.memory is not None:
        yield "memory.max", "max" if config.memory == NO_LIMIT else str(config.memory)
    if config.cpu_quota is not None:
        yield "cpu.max", f"{'max' if config.cpu_quota == NO_LIMIT else config.cpu_quota} {config.cpu_period}"
    if config.cpu_shares is not None:
        yield "cpu.weight", str(shares_to_weight(config.cpu_shares))


def _read(directory: str, file: str) -> str:
    with contextlib.suppress(OSError):
        return Path(directory, file).read_text().strip() if directory else ""
    return ""


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
