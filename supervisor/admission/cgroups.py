"""Which cgroup this process is in, and what of it may be given to containers."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

ROOT: Final = Path("/sys/fs/cgroup")


def own_cgroup() -> Path | None:
    """This process's directory in cgroup v2; None where there is none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                return ROOT / line[3:].lstrip("/")
    return None


def delegated_controllers() -> frozenset[str] | None:
    """Controllers that systemd has delegated to this user, or else those of our own cgroup; None without cgroup v2."""
    for directory in _given():
        with contextlib.suppress(OSError):
            return frozenset((directory / "cgroup.controllers").read_text().split())
    return None


def limits_swap() -> bool:
    """Whether a cgroup of this user's can limit swap: a kernel may have none, or not count it."""
    return any((directory / "memory.swap.max").exists() for directory in _given())


def service_manager() -> Path:
    """Cgroup of this user's systemd, whether it is there or not."""
    return ROOT / f"user.slice/user-{os.getuid()}.slice/user@{os.getuid()}.service"


def _given() -> list[Path]:
    """Cgroups below which this user's containers may be."""
    own = own_cgroup()
    return [service_manager(), *([own] if own is not None else [])]
