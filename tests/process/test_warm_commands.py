"""A command in a fork of the tests is as one of its own: otherwise end-to-end tests would show nothing of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import warm_commands

pytestmark = pytest.mark.process

DEADLINE_S = 60.0


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--help"], ""),
        (["version", "--client"], ""),
        (["no-such-command"], ""),
        (["--socket", "/nowhere/agent.sock", "get", "pods"], ""),
        (["--socket", "/nowhere/agent.sock", "apply", "-f", "-"], "kind: Nothing\n"),
        (["--socket", "/nowhere/agent.sock", "apply", "-f", "missing.yaml"], ""),
    ],
)
def test_it_says_and_ends_as_one_of_its_own(
    arguments: list[str], stdin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "77")
    alone = subprocess.run(["rootlet", *arguments], input=stdin, capture_output=True, text=True, check=False)
    assert warm_commands.run(arguments, stdin, DEADLINE_S) == (alone.returncode, alone.stdout, alone.stderr)


def test_one_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.yaml"
    os.mkfifo(fifo)
    with pytest.raises(subprocess.TimeoutExpired):
        warm_commands.run(["--socket", "/nowhere/agent.sock", "apply", "-f", str(fifo)], "", 1.0)
