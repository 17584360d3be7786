"""Things that take the place of a manifest directory: each function makes one at a path where nothing is."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.e2e.manifests import pod

IN_THE_WAY = "in-the-way"
"""Name of the pod that some of them state."""


def empty_directory(path: Path) -> None:
    path.mkdir()


def manifest(path: Path) -> None:
    path.write_text(json.dumps(pod(IN_THE_WAY)))


def fifo(path: Path) -> None:
    os.mkfifo(path)


def other_manifests(path: Path) -> None:
    path.mkdir()
    (path / f"{IN_THE_WAY}.yaml").write_text(json.dumps(pod(IN_THE_WAY)))
