"""The script in front of conmon, run by a real shell, with a program in conmon's place that tells its arguments."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from supervisor.processes.late_cleanup import find_conmon, script

DELAY_S = 1.2
PODMAN = ("/usr/bin/podman", "--root", "/a b", "container", "cleanup")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    conmon = tmp_path / "the real conmon"
    conmon.write_text("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n")
    program = tmp_path / "conmon"
    program.write_bytes(script(str(conmon), DELAY_S))
    for file in (conmon, program):
        file.chmod(0o700)
    return program


def run(*command: str | Path) -> list[str]:
    done = subprocess.run(command, check=True, capture_output=True, timeout=30)
    return done.stdout.decode().split("\0")[:-1]


def test_arguments_pass_unchanged_but_for_the_exit_command(program: Path) -> None:
    shared = ["--api-version", "1", "-c", "id", "-b", "/bundles/a b", "-n", "it's", "", "*"]
    command = [word for argument in (*PODMAN[1:], "id") for word in ("--exit-command-arg", argument)]
    given = [*shared, "--exit-command", PODMAN[0], *command]
    first = [
        *("--exit-delay", "2"),
        *("--exit-command-arg", "--late-cleanup"),
        *("--exit-command-arg", "/bundles/a b"),
        *("--exit-command-arg", PODMAN[0]),
    ]
    assert run(program, *given) == [*first, *given, "--exit-command", str(program)]


def test_podman_can_ask_for_the_version(program: Path) -> None:
    assert run(program, "--version") == ["--version"]


def test_the_clean_up_of_a_container_that_is_there_runs(program: Path, tmp_path: Path) -> None:
    assert run(program, "--late-cleanup", tmp_path, "printf", r"%s\0", "cleaned up") == ["cleaned up"]


@pytest.mark.skipif(not (CONMON := find_conmon(())), reason="needs conmon")
@pytest.mark.parametrize("option", ["--exit-delay", "--exit-command", "--exit-command-arg"])
def test_conmon_knows_the_options_of_the_script(option: str) -> None:
    assert option in subprocess.run([CONMON, "--help"], check=True, capture_output=True, text=True, timeout=30).stdout


def test_nothing_is_done_for_one_that_was_removed(program: Path, tmp_path: Path) -> None:
    assert run(program, "--late-cleanup", tmp_path / "removed", "printf", r"%s\0", "cleaned up") == []
