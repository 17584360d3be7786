"""The forwarder of host ports on bridges: where Podman can be told to use pasta, and what it is told by."""

from __future__ import annotations

from pathlib import Path

import pytest

from supervisor.config.port_forwarder import find_pesto, forwarder_problem, forwarder_table

OLD = "pasta needs Podman 6.1 or newer, and this is "
NO_PESTO = "pasta needs the program pesto, and Podman finds none: install passt of May 2026 or newer"


@pytest.mark.parametrize(
    ("forwarder", "version", "pesto", "problem"),
    [
        ("pasta", (6, 1, 1), "/usr/bin/pesto", ""),
        ("pasta", (6, 1), "/usr/bin/pesto", ""),
        ("pasta", (7, 0, 0), "/usr/bin/pesto", ""),
        ("pasta", (), "/usr/bin/pesto", ""),
        ("pasta", (6, 1, 1), "", NO_PESTO),
        ("pasta", (), "", NO_PESTO),
        ("pasta", (6, 0, 2), "/usr/bin/pesto", f"{OLD}6.0.2"),
        ("pasta", (5, 8, 6), "", f"{OLD}5.8.6"),
        ("pasta", (4, 3, 1), "", f"{OLD}4.3.1"),
        ("rootlessport", (4, 3, 1), "", ""),
        ("", (4, 3, 1), "", ""),
    ],
)
def test_pasta_forwards_from_6_1_on_and_by_pesto(
    forwarder: str, version: tuple[int, ...], pesto: str, problem: str
) -> None:
    assert forwarder_problem(forwarder, version, pesto) == problem


def program(directory: Path) -> str:
    directory.mkdir()
    (directory / "pesto").write_text("#!/bin/sh\n")
    (directory / "pesto").chmod(0o755)
    return str(directory / "pesto")


def test_pesto_is_looked_for_where_podman_does(tmp_path: Path) -> None:
    helper, on_path = program(tmp_path / "helpers"), program(tmp_path / "bin")
    environ = {"PATH": str(tmp_path / "bin")}
    assert find_pesto({"engine": {"helper_binaries_dir": ["/none", str(tmp_path / "helpers")]}}, environ) == helper
    assert find_pesto({"engine": {"helper_binaries_dir": ["/none"]}}, environ) == on_path
    assert find_pesto({}, environ) == on_path
    assert find_pesto({"engine": {"helper_binaries_dir": "no list"}}, {"PATH": "/none"}) == ""


def test_without_a_word_the_users_own_stays() -> None:
    assert forwarder_table("") == {}
    assert forwarder_table("pasta") == {"network": {"rootless_port_forwarder": "pasta"}}
