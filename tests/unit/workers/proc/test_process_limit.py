"""Processes that containers leave to the agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.proc import process_limit
from workers.proc.process_limit import (
    LIMIT,
    left_to_commands,
    left_to_containers,
    of_a_command,
    own_limit,
    with_process_limit,
)
from workers.proc.rlimit_tag import PosixRlimit


@pytest.mark.parametrize(
    ("own", "container", "command"), [(96_000, 72_000, 84_000), (100, 75, 88), (8, 6, 7), (3, 3, 3), (0, 0, 0)]
)
def test_some_are_kept(own: int, container: int, command: int) -> None:
    assert (left_to_containers(own), left_to_commands(own)) == (container, command)


def test_a_container_has_the_limit_beside_its_tag() -> None:
    tag = {"type": "locks", "soft": 1, "hard": 1}
    made = with_process_limit({"name": "a", "r_limits": [tag]}, 1000)
    assert made == {"name": "a", "r_limits": [tag, {"type": "nproc", "soft": 750, "hard": 750}]}
    assert with_process_limit({"name": "a"}, 1000)["r_limits"] == made["r_limits"][1:]


def test_where_the_agent_has_no_limit_containers_have_none() -> None:
    assert with_process_limit({"name": "a"}, None) == {"name": "a"}


def test_a_command_may_have_more_than_its_container() -> None:
    limit: PosixRlimit = {"type": LIMIT, "soft": 750, "hard": 750}
    assert of_a_command(limit, 1000) == {"type": LIMIT, "soft": 875, "hard": 875}


@pytest.mark.parametrize("own", [None, 900])
def test_a_limit_that_somebody_else_has_chosen_is_the_commands_too(own: int | None) -> None:
    limit: PosixRlimit = {"type": LIMIT, "soft": 750, "hard": 1000}
    assert of_a_command(limit, own) == limit


@pytest.mark.parametrize(
    ("soft", "pid_max", "own"),
    [(10, 4_194_304, 10), (96_364, 32_768, 32_768), (-1, 32_768, 32_768), (-1, 4_194_304, 1_048_576)],
)
def test_nobody_has_more_than_the_host_and_podman(
    soft: int, pid_max: int, own: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pid_max").write_text(f"{pid_max}\n")
    monkeypatch.setattr(process_limit, "_PID_MAX", tmp_path / "pid_max")
    monkeypatch.setattr("resource.getrlimit", lambda _: (soft, -1))
    assert own_limit() == own
