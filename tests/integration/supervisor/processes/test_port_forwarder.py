"""The forwarder of host ports that the settings name: where the agent does not start with it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from supervisor.config.settings import PodmanSettings, Settings, SettingsError
from supervisor.processes.podman_service import check_port_forwarder


def made_program(file: Path, script: str) -> Path:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def settings(tmp_path: Path, version: str, service: str, forwarder: str) -> Settings:
    """With a Podman of that version."""
    program = made_program(tmp_path / "a-podman", f"echo podman version {version}")
    podman = PodmanSettings(path=str(program), service=service, port_forwarder=forwarder)  # type: ignore[arg-type]
    return Settings(state_dir=tmp_path / "state", podman=podman)


@pytest.mark.parametrize(
    ("version", "service", "words"),
    [
        ("6.1.1", "own", "pasta needs the program pesto, and Podman finds none"),
        ("5.8.6", "own", "pasta needs Podman 6.1 or newer, and this is 5.8.6"),
        ("6.1.1", "user", "pasta is for the agent's own service, and this is the user's"),
        ("6.1.1", "auto", "pasta is for the agent's own service, and this is the user's"),
    ],
)
def test_pasta_that_cannot_be_had_is_refused_before_anything_starts(
    tmp_path: Path, version: str, service: str, words: str
) -> None:
    (tmp_path / "podman").mkdir()
    made = settings(tmp_path, version, service, "pasta")
    with socket.socket(socket.AF_UNIX) as users:
        users.bind(str(tmp_path / "podman" / "podman.sock"))
        with pytest.raises(SettingsError) as refused:
            check_port_forwarder(made, tmp_path, environ(tmp_path), "rootlet.yaml")
    assert f"podman.portForwarder: {words}" in str(refused.value)


def test_it_can_be_had_with_pesto_and_podman_6_1_and_the_other_one_always(tmp_path: Path) -> None:
    check_port_forwarder(settings(tmp_path, "4.3.1", "own", "rootlessport"), tmp_path, environ(tmp_path), "f")
    made_program(tmp_path / "pesto", "")
    check_port_forwarder(settings(tmp_path, "6.1.0", "own", "pasta"), tmp_path, environ(tmp_path), "f")


def test_without_the_setting_podman_is_not_even_asked(tmp_path: Path) -> None:
    made = settings(tmp_path, "4.3.1", "user", "")
    Path(made.podman.path).unlink()
    check_port_forwarder(made, tmp_path, environ(tmp_path), "f")


def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": str(tmp_path)}
