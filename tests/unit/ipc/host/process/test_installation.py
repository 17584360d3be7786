"""Packages of others under the names of ours are noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ipc.host.process.installation import PACKAGES, foreign_package


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation, alone on the path."""
    made = tmp_path / "home"
    for name in PACKAGES:
        (made / name).mkdir(parents=True)
        (made / name / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(made)])
    return made


def test_an_installation_of_its_own_is_right(home: Path) -> None:
    assert foreign_package(str(home)) == ""


def test_a_package_that_hides_ours_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = home.parent / "other"
    (other / "workers").mkdir(parents=True)
    (other / "workers" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(other), str(home)])
    words = foreign_package(str(home))
    assert words == f'the Python package "workers" in {other}/workers is not Rootlet\'s, and hides its own in {home}'


def test_supervisor_in_the_same_directory_is_named(home: Path) -> None:
    (home / "supervisor" / "supervisord.py").touch()
    assert foreign_package(str(home)).startswith(f"{home} has Supervisor too, the process manager, ")


def test_a_package_that_is_missing_is_named(home: Path) -> None:
    (home / "workers" / "__init__.py").unlink()
    assert foreign_package(str(home)).startswith('the Python package "workers" of this installation is damaged')
