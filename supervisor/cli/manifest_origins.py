"""Manifests that are no files: behind a URL, or made by kustomize of a directory."""

from __future__ import annotations

import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Final

from supervisor.cli.options import Failure

SILENCE_S: Final = 30.0
"""How long nothing may come."""
BUILD_S: Final = 60.0
"""How long kustomize may take: it may read from the network."""
_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {"kustomize": ("build",), "kubectl": ("kustomize",)}
"""Programs that can, and the words before the directory; the first that is there is run."""


def read_url(url: str, max_bytes: int) -> bytes:
    """Read what a URL answers: at most one byte more than allowed, so that the caller sees what is too large. Raises
    Failure."""
    request = urllib.request.Request(url, headers={"Accept": "application/yaml, application/json, */*"})
    try:
        with urllib.request.urlopen(request, timeout=SILENCE_S) as answer:
            content: bytes = answer.read(max_bytes + 1)
    except urllib.error.HTTPError as error:
        raise Failure(
            f"unable to read URL {url!r}, server reported {error.code} {error.reason}", prefix="error: "
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise Failure(f"unable to read URL {url!r}: {why}", prefix="error: ") from None
    return content


def built(directory: str) -> bytes:
    """The manifest that `kustomize build` makes of a directory. Raises Failure without one, or when it fails."""
    found = next(((path, *words) for name, words in _PROGRAMS.items() if (path := shutil.which(name))), None)
    if found is None:
        raise Failure("-k needs the program kustomize (or kubectl, which has it built in) on PATH: there is neither")
    try:
        done = subprocess.run(
            [*found, "--", directory], stdin=subprocess.DEVNULL, capture_output=True, timeout=BUILD_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{found[0]}: {error}") from None
    if done.returncode:
        raise Failure(done.stderr.decode(errors="replace").strip() or f"{found[0]} failed", prefix="error: ")
    return done.stdout
