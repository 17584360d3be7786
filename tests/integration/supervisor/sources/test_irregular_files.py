"""Manifests that are no regular files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tests.support.manifests import errors, read


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    path = tmp_path / "manifests"
    path.mkdir()
    return path


def test_what_is_no_regular_file_is_never_waited_for(manifests: Path) -> None:
    os.mkfifo(manifests / "fifo.yaml")
    (manifests / "device.yaml").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(manifests / "socket.yaml"))
        snapshot = read(manifests)
    assert errors(snapshot) == [
        "device.yaml: is a device, not a regular file",
        "fifo.yaml: is a FIFO, not a regular file",
        "socket.yaml: is a socket, not a regular file",
    ]


# --- what is read when ------------------------------------------------------------------------------------------
