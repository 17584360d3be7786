"""Cgroups of all pods together and of the QoS classes: weights between them, and what all pods may have at most.

Podman makes each pod's cgroup below that of its class, where systemd manages cgroups and has delegated controllers; the
slices come with their first pod. What systemd has made is this user's to write. Mirrors createNodeAllocatableCgroups
and UpdateCgroups (pkg/kubelet/cm: node_container_manager_linux.go, qos_container_manager_linux.go).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Never

from ipc.podresources.cgroup_config import (
    MIN_SHARES,
    CgroupConfig,
    resources_cgroup_config,
    shares_to_weight,
    slice_path,
)
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.qos_slices import BEST_EFFORT, BURSTABLE, slice_parts

CGROUPS: Final = Path("/sys/fs/cgroup")
REFRESH_S: Final = 60.0
"""All values are written anew so often: systemd may have written its own (periodicQOSCgroupUpdateInterval)."""

log = logging.getLogger(__name__)


class ClassCgroups:
    """Values wanted, and the cgroups that have them."""

    def __init__(self, service_manager: Path, instance: str, node: NodeResources) -> None:
        """``service_manager``: cgroup of the user's systemd."""
        self._wanted: dict[Path, CgroupConfig] = {}
        self._service_manager = service_manager
        self._instance = instance
        if node.cgroups_per_qos:
            self._want((), resources_cgroup_config(node.enforced or node.capacity))
            self._want((BEST_EFFORT,), CgroupConfig(cpu_shares=MIN_SHARES))
        self._written: dict[Path, tuple[int, CgroupConfig]] = {}
        """Inode and values of the cgroups that were written."""
        self._failed: dict[Path, str] = {}

    @property
    def is_needed(self) -> bool:
        """Whether this host has such cgroups."""
        return bool(self._wanted)

    def weigh(self, burstable_shares: int) -> None:
        """CPU shares of all burstable pods together, from now on."""
        self._want((BURSTABLE,), CgroupConfig(cpu_shares=burstable_shares))

    def _want(self, below: tuple[str, ...], config: CgroupConfig) -> None:
        path = slice_path((*slice_parts(self._instance), *below))
        self._wanted[self._service_manager / path.lstrip("/")] = config

    async def keep(self) -> Never:
        """Write everything anew from time to time. Runs for ever."""
        while True:
            self._written.clear()
            self.write()
            await asyncio.sleep(REFRESH_S)

    def write(self) -> None:
        """Give the cgroups that are there and have other values theirs. One that is not there has no pod yet."""
        for directory, config in self._wanted.items():
            try:
                inode = os.stat(directory).st_ino
            except OSError:
                continue
            if self._written.get(directory) != (inode, config):
                self._write(directory, config)
                self._written[directory] = inode, config

    def _write(self, directory: Path, config: CgroupConfig) -> None:
        problems = [problem for file, text in files_of(config).items() if (problem := _write(directory / file, text))]
        words = "; ".join(problems)
        if words and self._failed.get(directory) != words:
            log.warning("cgroup %s: %s", directory, words)
        self._failed[directory] = words


def service_manager() -> Path:
    """Cgroup of this user's systemd, whether it is there or not."""
    return CGROUPS / f"user.slice/user-{os.getuid()}.slice/user@{os.getuid()}.service"


def files_of(config: CgroupConfig) -> Mapping[str, str]:
    """Contents by name of file (cgroup v2)."""
    return dict(_files(config))


def _files(config: CgroupConfig) -> Iterator[tuple[str, str]]:
    if config.memory is not None:
        yield "memory.max", str(config.memory)
    if config.cpu_shares is not None:
        yield "cpu.weight", str(shares_to_weight(config.cpu_shares))
    if config.pids is not None:
        yield "pids.max", str(config.pids)


def _write(path: Path, text: str) -> str:
    """Words about why it could not be written; a controller that is not there is no reason."""
    try:
        path.write_text(text)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{path.name}: {error.strerror or error}"
    return ""
