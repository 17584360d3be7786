"""Podman's pause process, which keeps a rootless user's namespaces open: every command of Podman's joins them.

Podman writes its pid to a file of its own. Tried on Podman 4.3.1, 5.4.2, 5.8.6 and 6.1.1, by
tests/contract/test_podman_files_podman.py. Where the file is absent or another, there is no such process for us:
`podman unshare` is run for each step inside.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ipc.host.regular_files import read_regular_file

_PID_FILE: Final = "libpod/tmp/pause.pid"
_MAX_PID_BYTES: Final = 32


def runtime_dir(environ: Mapping[str, str], uid: int) -> Path:
    """``$XDG_RUNTIME_DIR``, or where it usually is; as rootless Podman looks for its own files and socket."""
    return Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}")


def pause_pid(runtime_dir: Path) -> int:
    """Pid of that process, which may have ended. Raises OSError, ValueError."""
    return int(read_regular_file(runtime_dir / _PID_FILE, _MAX_PID_BYTES))


def pause_namespace(environ: Mapping[str, str] = os.environ) -> str:
    """Mount namespace of that process, as in /proc. Empty when there is no such process, or it is in ours: a dead
    process is in none, and its number may be another's by now."""
    try:
        found = os.readlink(f"/proc/{pause_pid(runtime_dir(environ, os.getuid()))}/ns/mnt")
        return "" if found == os.readlink("/proc/self/ns/mnt") else found
    except (OSError, ValueError):
        return ""
