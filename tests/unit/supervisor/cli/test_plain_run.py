"""`rootlet run` without the command line's library reads its options as that does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.link.wire.boot import WorkerMain
from supervisor.__main__ import run_command
from supervisor.agent_command import RunOptions, plain_options
from supervisor.cli.commands.operating.run import run
from supervisor.cli.configuration import EXIT_CONFIG


def no_worker() -> WorkerMain:
    raise AssertionError("nothing is started")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--allow-root"],
        ["--config", "a.yaml"],
        ["--config=a=b.yaml"],
        ["--config", "a.yaml", "--allow-root"],
        ["--allow-root", "--config=/dev/fd/999999"],
    ],
)
def test_plain_options_are_read_alike(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for home in ("empty", "used"):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / home))
        with run.make_context("run", list(arguments)) as context:
            assert plain_options(arguments) == RunOptions(**context.params)
        usual = tmp_path / "used" / "rootlet" / "rootlet.yaml"
        usual.parent.mkdir(parents=True, exist_ok=True)
        usual.touch()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["extra"],
        ["--allow-root=yes"],
        ["--config"],
        ["--config="],
        ["--config", "--allow-root"],
        ["--config", "."],
        ["--config=a", "--config=b"],
        ["--", "a"],
        ["--Config", "a"],
    ],
)
def test_all_else_is_for_the_command_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert plain_options(arguments) is None


def test_what_keeps_it_from_running_is_told_in_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.yaml")
    told = set()
    for arguments in (
        ["--config", missing, "--allow-root"],
        ["--allow-root", "--config", missing, "--config", missing],
    ):
        assert run_command(["run", *arguments], no_worker) == EXIT_CONFIG
        told.add(capsys.readouterr())
    assert told == {("", f"rootlet: {missing}: {os.strerror(2)}\n")}
