"""A volume's directory, made and taken away in spite of kills."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crashing_os import Killed, killed_at
from workers.logs.pod_dirs import remove_pod_directory
from workers.volumemanager.plugins.atomic_writer import write_payload
from workers.volumemanager.plugins.payload import FileProjection
from workers.volumemanager.plugins.places import VolumeDirectory, volume_directory
from workers.volumemanager.tear_down import remove_volumes

UID = "0c3ad6a8-0000-4000-8000-000000000001"
FILES = {path: FileProjection(b"x", 0o644) for path in ("a", "deep/b", "deep/er/c")}


def set_up(place: VolumeDirectory) -> None:
    with volume_directory(place) as directory:
        write_payload(directory, FILES, 0.0, mountpoints=("inner/mount",))


def kill_at_each_step(prepare: Callable[[], None], work: Callable[[], object], check: Callable[[], None]) -> int:
    """Everything is prepared, begun, killed at one step, done again, and checked. How many steps there were."""
    for step in range(200):
        prepare()
        with killed_at(step) as system:
            try:
                work()
            except Killed:
                work_on = True
            else:
                work_on = False
        if not work_on:
            assert system.changes == step
            return step
        work()
        check()
    raise AssertionError("it has no end")


@pytest.fixture
def place(tmp_path: Path) -> VolumeDirectory:
    return VolumeDirectory(str(tmp_path / "made" / "pods"), UID, "configmap", "v")


def test_a_kill_at_any_step_leaves_no_wrong_mode(place: VolumeDirectory) -> None:
    def check() -> None:
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (place.path, *place.path.parents[:4])]
        assert modes == [0o755, 0o700, 0o700, 0o700, 0o700]
        assert (place.path / "deep" / "er" / "c").read_text() == "x"
        assert stat.S_IMODE((place.path / "inner" / "mount").stat().st_mode) == 0o755
        assert stat.S_IMODE((place.path / "deep" / "er").stat().st_mode) == 0o755

    steps = kill_at_each_step(lambda: remove_pod_directory(place.root, UID), lambda: set_up(place), check)
    assert steps > 20


@pytest.mark.parametrize("remove", [remove_volumes, remove_pod_directory])
def test_a_kill_at_any_step_of_the_removal_leaves_nothing_that_the_next_one_does_not_take(
    place: VolumeDirectory, remove: Callable[[str, str], object]
) -> None:
    def check() -> None:
        assert [path.name for path in Path(place.root).rglob("*")] in ([], [UID])

    steps = kill_at_each_step(lambda: set_up(place), lambda: remove(place.root, UID), check)
    assert steps > 10
