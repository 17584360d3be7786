"""A place for Podman's answers about a user who has no storage yet, so that asking makes none.

The first call of Podman makes its storage, chooses its driver for good, and leaves a process behind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from ipc.host.pause_process import pause_pid

STORAGE: Final = Path(".local/share/containers/storage")
SETTINGS: Final = Path(".config/containers")
"""Settings of Podman and its storage, which the answers depend on."""


@contextlib.contextmanager
def asking_environment(environ: Mapping[str, str] = os.environ) -> Iterator[dict[str, str]]:
    """Environment for questions to Podman: the user's own, or that of a home that goes with the block."""
    import tempfile  # once in the agent's life: it stays out of the master

    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    data = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
    if (data / "containers" / "storage").exists():
        yield dict(environ)
        return
    with tempfile.TemporaryDirectory(prefix="rootlet-doctor-", ignore_cleanup_errors=True) as name:
        made = Path(name)
        (made / "run").mkdir(mode=0o700)
        (made / SETTINGS.parent).mkdir()
        if (home / SETTINGS).exists():
            (made / SETTINGS).symlink_to(home / SETTINGS)
        directories = {"XDG_DATA_HOME": "", "XDG_CONFIG_HOME": "", "XDG_RUNTIME_DIR": str(made / "run")}
        try:
            yield {key: value for key, value in {**environ, **directories, "HOME": name}.items() if value}
        finally:
            with contextlib.suppress(OSError, ValueError):  # it holds the user namespace between calls of Podman
                os.kill(pause_pid(made / "run"), signal.SIGKILL)
            shutil.rmtree(made / STORAGE, ignore_errors=True)
