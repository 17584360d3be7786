"""The user's own Podman service, on its socket."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from supervisor.config.settings import PodmanSettings, Settings
from supervisor.processes.podman_service import (
    choose_service,
)


def settings(tmp_path: Path, **podman: object) -> Settings:
    base = Settings(admin_socket=tmp_path / "rootlet" / "test.sock", state_dir=tmp_path / "state")
    return msgspec.structs.replace(base, podman=PodmanSettings(**podman))  # type: ignore[arg-type]


def users_socket(tmp_path: Path) -> Path:
    path = tmp_path / "podman" / "podman.sock"
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
    return path


def test_auto_takes_the_users_service_when_there_is_one(tmp_path: Path) -> None:
    users = users_socket(tmp_path)
    assert choose_service(settings(tmp_path), tmp_path, {}).socket == users
    assert choose_service(settings(tmp_path, service="own"), tmp_path, {}).argv
