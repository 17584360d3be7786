"""Podman's pause process, which keeps a rootless user's namespaces open: every command of Podman's joins them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ipc.host.regular_files import read_regular_file

_PID_FILE: Final = "libpod/tmp/pause.pid"
_MAX_PID_BYTES: Final = 32


def runtime_directory() -> Path:
    """Runtime directory of this user."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")


def pause_namespace(runtime_dir: Path | None = None) -> str:
    """Mount namespace of that process, as in /proc. Empty when there is no such process, or it is in ours: a dead
    process is in none, and its number may be another's by now."""
    try:
        pid = int(read_regular_file((runtime_dir or runtime_directory()) / _PID_FILE, _MAX_PID_BYTES))
        found = os.readlink(f"/proc/{pid}/ns/mnt")
        return "" if found == os.readlink("/proc/self/ns/mnt") else found
    except (OSError, ValueError):
        return ""
