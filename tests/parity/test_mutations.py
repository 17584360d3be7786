"""Whether the tests that parity rows name notice it when the behaviour breaks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.parity.mutations import MUTATIONS, Mutation
from tests.parity.table import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COPIED: Final = ("supervisor", "workers", "ipc", "tests", "docs", "configs", "pyproject.toml")
RUN_DEADLINE_S: Final = 500.0
GREEN: Final = 0
RED: Final = 1
"""Exit code of pytest: tests have failed. Other codes say that they could not be run."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project to break."""
    copy = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True)
        else:
            shutil.copy(ROOT / name, copy / name)
    return copy


def run(tree: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """pytest on the copy. No byte code is written: a change within a second would not be seen."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    return subprocess.run(
        [*command, f"--basetemp={tree.parent / 'of-the-copy'}"],
        cwd=tree,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=RUN_DEADLINE_S,
        check=False,
    )


@contextmanager
def broken(tree: Path, mutation: Mutation) -> Iterator[None]:
    file = tree / mutation.file
    text = file.read_text()
    assert text.count(mutation.old) == 1
    file.write_text(text.replace(mutation.old, mutation.new))
    try:
        yield
    finally:
        file.write_text(text)


def test_all_are_green_while_nothing_is_broken(tree: Path) -> None:
    done = run(tree, *sorted({mutation.test for mutation in MUTATIONS}))
    assert done.returncode == GREEN, done.stdout


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.row)
def test_a_broken_behaviour_turns_its_test_red(tree: Path, mutation: Mutation) -> None:
    with broken(tree, mutation):
        done = run(tree, mutation.test)
    assert done.returncode == RED, done.stdout + done.stderr
