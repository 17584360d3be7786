"""Path of the admin socket of an instance: one rule for the agent that listens there and the CLI that connects."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

DEFAULT_INSTANCE: Final = "rootlet"


def runtime_dir(environ: Mapping[str, str], uid: int) -> Path:
    """``$XDG_RUNTIME_DIR``, or where it usually is; as rootless Podman looks for its own socket."""
    return Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}")


def admin_socket_path(instance: str = "", environ: Mapping[str, str] = os.environ, uid: int | None = None) -> Path:
    """``$XDG_RUNTIME_DIR/rootlet/<instance>.sock``; without a name that of the default instance."""
    directory = runtime_dir(environ, os.getuid() if uid is None else uid) / "rootlet"
    return directory / f"{instance or DEFAULT_INSTANCE}.sock"
