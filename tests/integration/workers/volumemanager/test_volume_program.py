"""The program that works on volumes inside Podman's namespaces, run without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.podman_service import wait_until
from workers.fs.tree_removal import MAX_DEPTH
from workers.userns.steps import removal
from workers.userns.unshare import Unshare, UnshareError
from workers.volumemanager.plugins.ownership import WrittenOwner, group_given
from workers.volumemanager.plugins.places import VolumeDirectory

NOBODY = Unshare(podman="/nonexistent/podman")


# --- removal ---


def test_a_tree_may_be_deeper_than_descriptors_or_paths_are_long(deep_path: Path) -> None:
    (deep_path / "tree").mkdir()
    directory = os.open(deep_path / "tree", os.O_PATH)
    for _ in range(20 * MAX_DEPTH + 7):
        os.mkdir("deeper", dir_fd=directory)
        below = os.open("deeper", os.O_PATH, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    removal.remove(str(deep_path / "tree"))
    assert os.listdir(deep_path) == []


@pytest.fixture
def plain(tmp_path: Path) -> Unshare:
    """The program without the namespace, in which it may do as much as we."""
    podman = tmp_path / "podman"
    podman.write_text('#!/bin/sh\nshift; exec "$@"\n')
    podman.chmod(0o755)
    return Unshare(podman=str(podman))


def test_the_program_needs_nothing_but_the_standard_library(plain: Unshare, tmp_path: Path) -> None:
    """Not even site packages."""
    (tmp_path / "tree" / "a").mkdir(parents=True)
    assert plain.run([("remove", {"path": str(tmp_path / "tree")})]) == (None,)
    assert not (tmp_path / "tree").exists()


def test_paths_need_not_be_text(plain: Unshare, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff")
    path.mkdir()
    assert plain.run([("remove", {"path": str(path)})]) == (None,)
    assert not path.exists()
    with pytest.raises(UnshareError, match=r"\\udcff: No such file or directory"):
        plain.run([("give_to_group", {"path": str(path), "gid": os.getegid()})])


def test_a_program_that_is_missing_is_told() -> None:
    with pytest.raises(UnshareError, match="cannot run /nonexistent/podman: No such file or directory"):
        NOBODY.run([("remove", {"path": "/nonexistent/tree"})])


def test_words_of_a_program_that_fails_are_told(tmp_path: Path) -> None:
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\necho 'cannot join the namespace' >&2; exit 125\n")
    program.chmod(0o755)
    with pytest.raises(UnshareError, match="podman unshare: cannot join the namespace"):
        Unshare(podman=str(program)).run([])


def test_a_program_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    program, pid_file = tmp_path / "podman", tmp_path / "pid"
    program.write_text(f"#!/bin/sh\nsleep 1000 & echo $! > {pid_file}; wait\n")
    program.chmod(0o755)
    with pytest.raises(UnshareError, match=r"not done within 0\.5 s"):
        Unshare(podman=str(program), deadline_s=0.5).run([])
    state = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    wait_until(lambda: not state.exists() or state.read_text().rpartition(") ")[2][0] == "Z", 10.0)


# --- opening beneath ---


# --- hostPath ---


# --- emptyDir, fsGroup ---


def test_a_group_that_cannot_be_given_is_an_error(tmp_path: Path) -> None:
    place = VolumeDirectory(str(tmp_path), "uid", "configmap", "v")
    with pytest.raises(OSError, match="applyFSGroup failed for vol v: cannot run /nonexistent/podman"):
        WrittenOwner(place=place, group=2000, unshare=NOBODY).set_owner("..1")
    assert group_given(place.ready_file) is None
