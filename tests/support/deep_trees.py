"""Trees deeper than `shutil.rmtree`, and with it pytest's own clean-up, can remove: they recurse."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.podman_service import why_not

REMOVE_DEADLINE_S: Final = 60.0


def remove_deep(path: Path) -> None:
    """Remove a tree however deep it is and whoever of the user namespace owns what is in it. Blocks.

    rm(1) recurses neither in its stack nor in descriptors.
    """
    remove = ["rm", "-rf", "--", str(path)]
    done = subprocess.run(remove, capture_output=True, timeout=REMOVE_DEADLINE_S, check=False)
    if done.returncode and not why_not():
        subprocess.run(["podman", "unshare", *remove], timeout=REMOVE_DEADLINE_S, check=True)
    assert not path.exists()


@pytest.fixture
def deep_path(tmp_path: Path) -> Iterator[Path]:
    """A directory that is gone after the test, whatever is in it and whatever became of the test."""
    place = tmp_path / "deep"
    place.mkdir()
    yield place
    remove_deep(place)
