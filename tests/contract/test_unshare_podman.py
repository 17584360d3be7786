"""Steps inside Podman's namespaces: what `workers.volumes` relies on of Podman and of the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

import workers
from ipc.host.pause_process import pause_namespace
from tests.support.podman_service import COMMAND_DEADLINE_S, PodmanService, podman
from workers.userns.remove import remove_below
from workers.userns.standing import Standing
from workers.userns.unshare import DEFAULT, Step, Unshare, UnshareError
from workers.volumemanager.plugins.atomic_writer import write_payload
from workers.volumemanager.plugins.ownership import WrittenOwner
from workers.volumemanager.plugins.payload import FileProjection
from workers.volumemanager.plugins.places import HELD, MANY_HELD, VolumeDirectory, has_many_held, volume_directory
from workers.volumemanager.tear_down import remove_volumes

pytestmark = pytest.mark.podman

UID: Final = "0c3ad6a8-0000-4000-8000-000000000001"
TRIES: Final = 2000
RACE: Final = f"""
import ctypes, errno, os, threading
from workers.userns.steps.mounts import bind
volume, outside, place = {{volume!r}}, {{outside!r}}, {{place!r}}
libc = ctypes.CDLL(None, use_errno=True)
swap = (-100, volume.encode() + b"/x", -100, volume.encode() + b"/y", 2)  # RENAME_EXCHANGE
ended = threading.Event()
def flip():
    while not ended.is_set():
        libc.renameat2(*swap)
threading.Thread(target=flip, daemon=True).start()
seen = dict(fine=0, refused=0)
for _ in range({TRIES}):
    try:
        bind(root=volume, sub_path="x", target=place)
    except OSError as error:
        assert error.errno in (errno.EXDEV, errno.ELOOP, errno.EAGAIN), error
        seen["refused"] += 1
        continue
    found = os.listdir(place)
    assert found == ["fine"], found
    seen["fine"] += 1
ended.set()
print(seen["fine"], seen["refused"])
"""


DEEP: Final = """
import os
directory = os.open({tree!r}, os.O_PATH)
for _ in range(3000):
    os.mkdir("deeper", 0o700, dir_fd=directory)
    os.chown("deeper", 1234, 1234, dir_fd=directory)
    below = os.open("deeper", os.O_PATH, dir_fd=directory)
    os.close(directory)
    directory = below
"""


@pytest.fixture
def place(podman_service: PodmanService, tmp_path: Path) -> Iterator[Path]:
    """A directory in which nothing is mounted afterwards."""
    yield tmp_path
    assert remove_below(str(tmp_path), "held", unshare=DEFAULT) == ()
    assert str(tmp_path) not in mounts()


def inside(*command: str) -> str:
    words = ("podman", "unshare", *command)
    done = subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mounts() -> str:
    return inside("cat", "/proc/self/mountinfo")


def test_who_stays_is_where_podmans_commands_are_and_needs_none_of_them(place: Path) -> None:
    """Where Podman says by a pause process where that is; else each run takes a command."""
    program, started = place / "podman", place / "started"
    program.write_text(f'#!/bin/sh\necho x >> "{started}"\nexec podman "$@"\n')
    program.chmod(0o755)
    (place / "volume").mkdir()
    target = place / "held" / "0"
    unshare = Unshare(podman=str(program), standing=Standing())
    try:
        for number in range(3):
            (place / "volume" / f"{number}").touch()
            unshare.run([("bind", {"root": str(place / "volume"), "target": str(target)})])
            assert f"{number}" in inside("ls", str(target)).split()
            unshare.run([("give_to_group", {"path": str(place / "volume"), "gid": 2000 + number})])
            assert inside("stat", "-c", "%g", str(place / "volume")).strip() == f"{2000 + number}"
    finally:
        unshare.close()
    assert mounts().count(str(target)) == 1
    assert len(started.read_text().splitlines()) == (1 if pause_namespace() else 6)


def test_many_mounts_of_a_pod_go_together(place: Path) -> None:
    """In one call, whatever number there is, also where those of a second container came later; and a pod that has none
    is left alone."""
    volume, held = place / "volume", place / UID / HELD
    volume.mkdir()
    (place / UID).mkdir()

    def bound(container: str, number: int) -> Step:
        target = str(held / "v" / container / f"{number}")
        return "bind", {"root": str(volume), "sub_path": f"{number}", "target": target}

    together = ("hold_together", {"directory": str(held)})
    for container in ("first", "second"):
        DEFAULT.run([together, *(bound(container, number) for number in range(MANY_HELD))])
    assert mounts().count(f"{held}") > 2 * MANY_HELD
    assert has_many_held(str(place), UID)
    DEFAULT.run([("let_go", {"directory": str(held)})])
    assert str(held) not in mounts()
    assert remove_volumes(str(place), UID) == ()
    assert not held.exists()
    assert sorted(map(int, os.listdir(volume))) == list(range(MANY_HELD)), "what was mounted stays"
    DEFAULT.run([("let_go", {"directory": str(held)})])


def test_a_bind_of_a_directory_above_leaves_out_what_pods_hold(place: Path) -> None:
    """Else each would double what is mounted, and twenty of them take all the mounts that a namespace may have."""
    held = [place / f"{UID}-{pod}" / HELD for pod in range(2)]
    for pod in held:
        pod.parent.mkdir()
        together = ("hold_together", {"directory": str(pod)})
        binds = (("bind", {"root": str(place), "target": str(pod / "v" / "c" / f"{n}")}) for n in range(8))
        DEFAULT.run([together, *binds])
    lines = [line for line in mounts().splitlines() if f"{place}/" in line]
    assert len(lines) == 2 * (8 + 1)
    assert inside("ls", "-A", str(held[1] / "v/c/0" / (held[0] / "v/c/0").relative_to(place))) == ""
    for pod in held:
        assert remove_volumes(str(place), pod.parent.name) == ()


def test_they_are_let_go_when_the_pods_volumes_are_removed(place: Path) -> None:
    volume, held = place / "volume", place / UID / HELD
    volume.mkdir()
    (place / UID).mkdir()
    bound = (
        ("bind", {"root": str(volume), "sub_path": str(n), "target": str(held / "v" / "c" / str(n))})
        for n in range(MANY_HELD)
    )
    DEFAULT.run([("hold_together", {"directory": str(held)}), *bound])
    asked: list[list[Step]] = []

    class Seen(Unshare, frozen=True):
        def run(self, steps: Sequence[Step]) -> tuple[Any, ...]:
            asked.append(list(steps))
            return DEFAULT.run(steps)

    assert remove_volumes(str(place), UID, Seen()) == ()
    assert [name for [(name, _)] in asked] == ["let_go"]
    assert str(held) not in mounts()


def test_a_tmpfs_is_mounted_once_and_goes_with_its_directory(place: Path) -> None:
    target = place / "held" / "with space"
    target.mkdir(parents=True)
    step = ("mount_tmpfs", {"target": str(target), "size_bytes": 2**20})
    DEFAULT.run([step])
    inside("touch", str(target / "file"))
    DEFAULT.run([step])
    assert inside("stat", "-f", "-c", "%T %b", str(target)).split() == [
        "tmpfs",
        str(2**20 // os.sysconf("SC_PAGESIZE")),
    ]
    assert inside("stat", "-c", "%a", str(target)).strip() == "1777"
    assert inside("ls", str(target)).strip() == "file"
    assert os.listdir(target) == [], "nobody outside sees it"
    target.rmdir()
    assert str(place) not in mounts()


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_what_is_bound_goes_with_its_place_and_stays_where_it_is(place: Path, kind: str) -> None:
    (place / "directory").mkdir()
    (place / "directory" / "kept").write_text("x")
    (place / "file").write_text("kept")
    target = place / "held" / "0"
    for root in ("file", "directory", kind):  # one after the other at the same place
        DEFAULT.run([("bind", {"root": str(place / root), "target": str(target)})])
    assert mounts().count(str(target)) == 1
    assert "kept" in inside("ls" if kind == "directory" else "cat", str(target))
    assert remove_below(str(place), "held", unshare=DEFAULT) == ()
    assert str(target) not in mounts()
    assert (place / "directory" / "kept").exists()
    assert (place / "file").read_text() == "kept"


def test_a_part_of_an_image_stays_when_podman_takes_the_image_off(place: Path) -> None:
    (place / "root" / "sub").mkdir(parents=True)
    (place / "root" / "sub" / "file").write_text("of the image")
    (place / "root" / "out").symlink_to("/etc/passwd")
    with tarfile.open(place / "image.tar", "w") as tar:
        tar.add(place / "root", arcname=".")
    image = f"localhost/{place.name}:1".lower()
    podman("import", "--quiet", str(place / "image.tar"), image)
    arguments = {"podman": ["podman"], "image": image, "target": str(place / "held" / "0")}
    try:
        DEFAULT.run([("bind_image", {**arguments, "sub_path": "sub"})])
        assert inside("cat", str(place / "held" / "0" / "file")) == "of the image"
        for sub_path, why in (("none", "none: No such file"), ("out", "out: Invalid cross-device link")):
            with pytest.raises(UnshareError, match=why):
                DEFAULT.run([("bind_image", {**arguments, "sub_path": sub_path})])
        assert image not in inside("podman", "image", "mount")
        with pytest.raises(UnshareError, match="image not known"):
            DEFAULT.run([("bind_image", {**arguments, "image": "localhost/not-there:1", "sub_path": "sub"})])
    finally:
        podman("image", "rm", "--force", image)


def test_removal_inside_lets_go_of_mounts_first(place: Path) -> None:
    (place / "outside").mkdir()
    (place / "outside" / "kept").write_text("x")
    target = place / "held" / "volume" / "bound"
    DEFAULT.run([("bind", {"root": str(place / "outside"), "target": str(target)})])
    DEFAULT.run([("remove", {"path": str(place / "held")})])
    assert not (place / "held").exists()
    assert (place / "outside" / "kept").exists()


def test_files_of_mapped_users_are_removed_inside(place: Path) -> None:
    tree = place / "held" / "tree"
    (tree / "own").mkdir(parents=True)
    (tree / "link").symlink_to(place)
    (place / "kept").write_text("x")
    inside("sh", "-c", f"touch {tree}/own/file; chown -R 1234:1234 {tree}/own; chmod 700 {tree}/own")
    with pytest.raises(PermissionError):
        os.listdir(tree / "own")
    assert remove_below(str(place), "held", "tree", unshare=DEFAULT) == ()
    assert not tree.exists()
    assert (place / "kept").exists()


def test_a_deep_tree_of_mapped_users_is_removed_inside(podman_service: PodmanService, deep_path: Path) -> None:
    """Deeper than a stack, descriptors and a path will do."""
    (deep_path / "held" / "tree").mkdir(parents=True)
    inside(sys.executable, "-c", DEEP.format(tree=str(deep_path / "held" / "tree")))
    assert remove_below(str(deep_path), "held", "tree", unshare=DEFAULT) == ()
    assert os.listdir(deep_path / "held") == []


def test_a_link_on_the_way_is_refused(place: Path) -> None:
    """A hostPath that was a directory when it was checked."""
    (place / "real" / "data").mkdir(parents=True)
    (place / "way").symlink_to("real")
    with pytest.raises(UnshareError, match="Too many levels of symbolic links"):
        DEFAULT.run([("bind", {"root": str(place / "way" / "data"), "target": str(place / "held" / "0")})])
    with pytest.raises(UnshareError, match="Too many levels of symbolic links"):
        DEFAULT.run([("bind", {"root": str(place / "way"), "target": str(place / "held" / "0")})])


def test_another_type_is_refused(place: Path) -> None:
    (place / "file").write_text("x")
    bind: Step = ("bind", {"root": str(place / "file"), "target": "/", "kinds": [0o40000]})
    with pytest.raises(UnshareError, match="has become a file of another type") as caught:
        DEFAULT.run([("remove", {"path": str(place / "missing")}), bind])
    assert caught.value.done == 1


def test_nobody_wins_the_race_for_a_sub_path(place: Path) -> None:
    """While one name is a directory and a link out of the volume in turns, without a moment between them."""
    volume, outside = place / "volume", place / "outside"
    for directory, file in ((volume / "x", "fine"), (outside, "secret")):
        directory.mkdir(parents=True)
        (directory / file).write_text("x")
    (volume / "y").symlink_to(outside)
    script = RACE.format(volume=str(volume), outside=str(outside), place=str(place / "held" / "0"))
    source = f"import sys; sys.path.insert(0, {str(Path(workers.__file__).parents[1])!r})\n{script}"
    fine, refused = map(int, inside(sys.executable, "-c", source).split())
    assert min(fine, refused) > 0, "both sides had their chances"


def test_a_group_is_given_to_all_and_to_nothing_else(place: Path) -> None:
    volume, outside = place / "volume", place / "outside"
    (volume / "in").mkdir(parents=True)
    for file in (volume / "in" / "file", outside):
        file.write_text("x")
        file.chmod(0o600)
    (volume / "in").chmod(0o700)
    (volume / "in" / "link").symlink_to(outside)
    step = ("give_to_group", {"path": str(volume), "gid": 2000, "read_only": True})
    DEFAULT.run([step])
    told = inside("stat", "-c", "%g %a", *(str(volume / name) for name in (".", "in", "in/file"))).split("\n")
    assert [line.split()[0] for line in told[:3]] == ["2000"] * 3
    assert [int(line.split()[1], 8) & 0o2777 for line in told[1:3]] == [0o2750, 0o640]
    assert inside("stat", "-c", "%g", str(volume / "in" / "link")).strip() == "2000"
    assert inside("stat", "-c", "%g %a", str(outside)).split() == ["0", "600"]
    inside("chgrp", "-h", "0", str(volume / "in"))
    DEFAULT.run([(step[0], {**step[1], "only_on_root_mismatch": True})])
    assert inside("stat", "-c", "%g", str(volume / "in")).strip() == "0"


def test_a_user_is_given_plain_files_and_nothing_else(place: Path) -> None:
    (place / "link").symlink_to("/etc/passwd")
    (place / "file").write_text("x")
    for path in ("link", "../outside", "missing"):
        with pytest.raises(UnshareError):
            DEFAULT.run([("give_to_user", {"directory": str(place), "paths": ["file", path], "uid": 1000})])
    assert inside("stat", "-c", "%u %g", str(place / "file")).split() == ["1000", "0"]


def test_files_of_the_containers_user_are_written_once_and_anew_when_they_change(place: Path) -> None:
    where = VolumeDirectory(str(place), "uid", "projected", "token")

    def write(token: bytes, group: int | None = None) -> bool:
        mode = 0o600 if group is None else 0o640
        payload = {"a/token": FileProjection(token, mode, 1000), "ca.crt": FileProjection(b"ca", 0o644)}
        owner = WrittenOwner(place=where, group=group, unshare=DEFAULT, foreign={"a/token": payload["a/token"]})
        with volume_directory(where) as directory:
            return write_payload(directory, payload, 1.0, is_owned=owner.is_owned, set_owner=owner.set_owner)

    def found() -> list[str]:
        paths = (str(where.path / "..data" / name) for name in ("a/token", "ca.crt"))
        return inside("stat", "-L", "-c", "%u:%g:%a", *paths).split()

    assert [write(b"first"), write(b"first")] == [True, False]
    assert found() == ["1000:0:600", "0:0:644"]
    assert inside("cat", str(where.path / "a" / "token")) == "first"
    assert [write(b"other"), write(b"other")] == [True, False], "of the same size"
    assert inside("cat", str(where.path / "a" / "token")) == "other"
    inside("chown", "0", str(where.path / "..data" / "a" / "token"))
    assert [write(b"other"), write(b"other")] == [True, False]
    assert [write(b"other", 2000), write(b"other", 2000)] == [True, False]
    assert found() == ["1000:2000:640", "0:2000:644"]
