"""Checks that ask programs and sockets of a host."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from supervisor.config.settings import Settings
from supervisor.doctor.checks import check_host
from supervisor.doctor.host import with_answers
from tests.support.host_facts import GOOD, SETTINGS, bad


def test_a_host_without_podman_or_agent_can_be_asked(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(
        SETTINGS,
        state_dir=tmp_path,
        admin_socket=tmp_path / "none",
        podman=msgspec.structs.replace(SETTINGS.podman, path=str(tmp_path / "podman")),
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        facts = with_answers(GOOD, settings)
        assert ("TCP", server.getsockname()[1]) in facts.listening
    assert facts.podman is not None
    assert facts.podman.error == "cannot run Podman: No such file or directory"
    assert facts.node.allocatable["cpu"]
    assert not facts.agent_runs
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(settings.admin_socket))
        agent.listen()
        assert with_answers(GOOD, settings).agent_runs


@pytest.mark.parametrize("said", ["{}", "[]", '{"host": null, "store": {}}', "no JSON"])
def test_what_is_not_podman_is_told(tmp_path: Path, said: str) -> None:
    program = tmp_path / "podman"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    settings = msgspec.structs.replace(SETTINGS, podman=msgspec.structs.replace(SETTINGS.podman, path=str(program)))
    facts = with_answers(GOOD, settings)
    assert facts.podman is not None
    assert facts.podman.error
    assert ("failed", "podman") in bad(check_host(facts, SETTINGS))


def manifests(tmp_path: Path, *documents: str) -> Settings:
    for number, document in enumerate(documents):
        (tmp_path / f"{number}.yaml").write_text(document)
    return msgspec.structs.replace(SETTINGS, static_pod_path=tmp_path, node_name="here")
