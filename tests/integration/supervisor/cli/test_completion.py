"""Completion by what listens on this host."""

from __future__ import annotations

import socket
from pathlib import Path

import click
import pytest

from supervisor.cli import live_names, main
from supervisor.cli.commands.entering.cp import cp


def test_a_copy_is_completed_with_files_where_there_is_no_pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROOTLET_SOCKET", str(tmp_path / "none.sock"))
    command = live_names.complete_live(cp)
    source = next(each for each in command.params if each.name == "source")
    assert [item.type for item in source.shell_complete(click.Context(command), "si")] == ["file"]
    assert source.shell_complete(click.Context(command), "web:/etc") == []


def test_instances_are_those_that_listen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "rootlet").mkdir()
    context = click.Context(main.rootlet)
    option = next(each for each in main.rootlet.params if each.name == "instance")
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        for name, listener in (("rootlet", one), ("second", other)):
            listener.bind(str(tmp_path / "rootlet" / f"{name}.sock"))
        one.listen()
        assert [item.value for item in option.shell_complete(context, "")] == ["rootlet"]
        other.listen()
        assert [item.value for item in option.shell_complete(context, "s")] == ["second"]
