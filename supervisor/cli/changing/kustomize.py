"""Manifests that kustomize makes of a directory."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

from supervisor.cli.options import Failure

TIMEOUT_S: Final = 60.0
"""How long kustomize may take: it may read from the network."""
_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {"kustomize": ("build",), "kubectl": ("kustomize",)}
"""Programs that can, and the words before the directory; the first that is there is run."""


def build(directory: str) -> bytes:
    """Raises Failure when there is no kustomize, or it fails."""
    found = next(((path, *words) for name, words in _PROGRAMS.items() if (path := shutil.which(name))), None)
    if found is None:
        raise Failure("-k needs the program kustomize (or kubectl, which has it built in) on PATH: there is neither")
    try:
        done = subprocess.run(
            [*found, "--", directory], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{found[0]}: {error}") from None
    if done.returncode:
        raise Failure(done.stderr.decode(errors="replace").strip() or f"{found[0]} failed", prefix="error: ")
    return done.stdout
