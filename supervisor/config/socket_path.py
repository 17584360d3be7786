"""Path of the admin socket of an instance: one rule for the agent that listens there and the CLI that connects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ipc.host.pause_process import runtime_dir

DEFAULT_INSTANCE: Final = "rootlet"


def admin_socket_path(instance: str = "", environ: Mapping[str, str] = os.environ, uid: int | None = None) -> Path:
    """``$XDG_RUNTIME_DIR/rootlet/<instance>.sock``; without a name that of the default instance."""
    directory = runtime_dir(environ, os.getuid() if uid is None else uid) / "rootlet"
    return directory / f"{instance or DEFAULT_INSTANCE}.sock"
