"""Podman's pause process, which keeps a user's namespaces open between two commands.

When somebody kills it together with all monitors, as the end of a session without lingering does, Podman up to 5.6
still takes its containers for running: every command ends with "invalid internal status".
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Final

from ipc.host.pause_process import pause_namespace, runtime_dir

DEADLINE_S: Final = 10.0
"""For a command, in seconds: one takes a tenth of a second."""
OCI_RUNTIMES: Final = ("crun", "runc")
"""Each has its state in a directory of its name."""
ALIVE: Final = "libpod/tmp/alive"


def revive(podman: str, environ: Mapping[str, str]) -> str:
    """Have Podman's commands find their namespaces; a line about what was done, empty where nothing had to be.

    Podman's own remedy, `podman system migrate`, waits 5 s for each container and gives up at the first that is gone.
    A command that fails for another reason fails here as well: its words are for whoever runs the next one.
    """
    if pause_namespace(environ):
        return ""
    # One that joins the namespaces of a living monitor, or makes new ones, as after a boot.
    if _run([podman, "unshare", "true"], environ) is not None:
        return ""
    is_old = (_run([podman, "--version"], environ) or "").startswith("podman version 4.")
    if not (_as_after_a_boot if is_old else _beside_an_empty_store)(podman, environ):
        return ""
    return "Podman's pause process and all monitors were gone: there is a new pause process"


def _beside_an_empty_store(podman: str, environ: Mapping[str, str]) -> bool:
    """A command that knows of no container makes a pause process. Containers that live without a monitor live on."""
    with tempfile.TemporaryDirectory(prefix="rootlet-") as empty:
        store = ["--root", f"{empty}/graph", "--runroot", f"{empty}/run", "--storage-driver", "vfs"]
        return _run([podman, *store, "unshare", "true"], environ) is not None


def _as_after_a_boot(podman: str, environ: Mapping[str, str]) -> bool:
    """Podman 4 reads no running container whose network namespace went with the pause process: none may count as
    running. Without this file Podman takes the host for booted. Whatever still lives it would not know of."""
    directory = runtime_dir(environ, os.getuid())
    for runtime in OCI_RUNTIMES:
        command = [runtime, "--root", str(directory / runtime)]
        for container in (_run([*command, "list", "--quiet"], environ) or "").split():
            _run([*command, "delete", "--force", container], environ)
    with contextlib.suppress(FileNotFoundError):
        (directory / ALIVE).unlink()
    return _run([podman, "unshare", "true"], environ) is not None


def _run(command: list[str], environ: Mapping[str, str]) -> str | None:
    """Standard output of a command that succeeds in time."""
    try:
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
