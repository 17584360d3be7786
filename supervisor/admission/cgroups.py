"""The cgroup of this process, what of it may be given to containers, and whether systemd makes slices for pods."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path("/sys/fs/cgroup")
DEADLINE_S: Final = 5.0
"""Deadline of one question to systemd, in seconds."""
_SERVICE: Final = "org.freedesktop.systemd1"


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


def managed_cgroup() -> str:
    """Directory of the cgroup that this user's systemd manages, as it says itself; empty where none answers, or it
    manages none of cgroup v2. Blocks."""
    command = ("busctl", "--user", f"--timeout={DEADLINE_S:g}", "get-property", _SERVICE)
    try:
        done = subprocess.run(
            (*command, "/org/freedesktop/systemd1", f"{_SERVICE}.Manager", "ControlGroup"),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    kind, _, quoted = done.stdout.strip().partition(" ")
    path = ROOT / quoted.strip('"').lstrip("/")
    is_known = done.returncode == 0 and kind == "s" and ".." not in path.parts
    return str(path) if is_known and (path / "cgroup.controllers").exists() else ""


def _given() -> list[Path]:
    """Cgroups below which this user's containers may be."""
    own = own_cgroup()
    return [service_manager(), *([own] if own is not None else [])]
