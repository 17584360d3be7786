"""Effects of volumes on the files of the host: nothing outside of them, whatever lies within."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.volume import EmptyDirVolumeSource, HostPathVolumeSource
from tests.support.pods import container, pod
from workers.kubecontainer.mounted_volume import VolumeError
from workers.userns.remove import remove_below
from workers.userns.steps import mounts, removal
from workers.userns.steps.syscalls import Refused
from workers.userns.unshare import Unshare
from workers.volumemanager.plugins import host_path
from workers.volumemanager.plugins.empty_dir import memory_size_bytes
from workers.volumemanager.plugins.ownership import WrittenOwner, group_given, note_group
from workers.volumemanager.plugins.places import VolumeDirectory

NOBODY = Unshare(podman="/nonexistent/podman")
MIB = 2**20


# --- removal ---


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    (outside / "kept").mkdir(parents=True)
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "a" / "dangling").symlink_to("nowhere")
    os.mkfifo(tree / "pipe")
    removal.remove(str(tree))
    assert not tree.exists()
    assert (outside / "kept").is_dir()


def test_a_link_instead_of_a_tree_goes_itself(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "tree").symlink_to("outside")
    removal.remove(str(tmp_path / "tree"))
    assert os.listdir(tmp_path) == ["outside"]


@pytest.mark.parametrize("missing", ["tree", "no/tree"])
def test_what_is_gone_is_no_error(tmp_path: Path, missing: str) -> None:
    removal.remove(str(tmp_path / missing))


def test_all_that_can_go_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.rmdir

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", path)
        real(path, dir_fd=dir_fd)

    (tmp_path / "tree" / "closed" / "file").mkdir(parents=True)
    (tmp_path / "tree" / "open").mkdir()
    monkeypatch.setattr("workers.fs.tree_removal.os.rmdir", refuse)
    with pytest.raises(Refused, match=r"cannot remove 'tree/closed': Permission denied"):
        removal.remove(str(tmp_path / "tree"))
    assert os.listdir(tmp_path / "tree") == ["closed"]


def test_nobody_is_asked_when_plain_removal_will_do(tmp_path: Path) -> None:
    (tmp_path / "tree" / "a").mkdir(parents=True)
    assert remove_below(str(tmp_path), "tree", unshare=NOBODY) == ()
    assert os.listdir(tmp_path) == []


# --- opening beneath ---


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """A volume with links of all kinds in it."""
    root = tmp_path / "volume"
    (root / "in").mkdir(parents=True)
    (root / "in" / "file").write_text("x")
    (root / "within").symlink_to("in")
    (root / "absolute").symlink_to(root / "in")
    (root / "up").symlink_to("../outside")
    (root / "dangling").symlink_to("nowhere")
    (tmp_path / "outside").mkdir()
    return root


def enter(root: Path, sub_path: str) -> os.stat_result:
    fd = os.open(root, os.O_PATH)
    try:
        with mounts._within(fd, sub_path) as found:
            return os.fstat(found)
    finally:
        os.close(fd)


@pytest.mark.parametrize("sub_path", ["in", "in/file", "within", "within/file", "./in//file"])
def test_what_lies_within_is_found(volume: Path, sub_path: str) -> None:
    assert os.path.samestat(enter(volume, sub_path), (volume / sub_path).stat())


@pytest.mark.parametrize("sub_path", ["absolute", "up", "up/new", "in/file/x", "../outside", "dangling", "dangling/x"])
def test_what_leads_out_is_refused(volume: Path, sub_path: str) -> None:
    before = sorted(str(path) for path in volume.parent.rglob("*"))
    with pytest.raises(OSError):  # noqa: PT011  which one is the kernel's choice
        enter(volume, sub_path)
    assert sorted(str(path) for path in volume.parent.rglob("*")) == before


@pytest.mark.parametrize("sub_path", ["new", "new/deep/er", "in/new", "within/new/x"])
def test_what_is_missing_is_made_as_the_root_is(volume: Path, sub_path: str) -> None:
    volume.chmod(0o2771)
    mask = os.umask(0o077)
    try:
        made = enter(volume, sub_path)
    finally:
        os.umask(mask)
    assert os.path.samestat(made, (volume / sub_path).stat())
    assert stat.S_IMODE(made.st_mode) == 0o2771


# --- hostPath ---


def checked(path: Path, type: str) -> None:
    host_path.check("v", HostPathVolumeSource(path=str(path), type=type))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "type"),
    [
        (Path.mkdir, "Directory"),
        (Path.mkdir, "DirectoryOrCreate"),
        (Path.touch, "File"),
        (Path.touch, "FileOrCreate"),
        (Path.touch, ""),
        (os.mkfifo, ""),
    ],
)
def test_types_that_fit(tmp_path: Path, make: Callable[[Path], None], type: str) -> None:
    make(tmp_path / "x")
    checked(tmp_path / "x", type)


@pytest.mark.parametrize(
    ("type", "words", "is_a"),
    [
        ("File", "file", "Directory"),
        ("FileOrCreate", "file", "Directory"),
        ("Socket", "socket file", "Directory"),
        ("CharDevice", "character device", "Directory"),
        ("BlockDevice", "block device", "Directory"),
    ],
)
def test_types_that_do_not(tmp_path: Path, type: str, words: str, is_a: str) -> None:
    with pytest.raises(VolumeError, match=f"hostPath type check failed: {tmp_path} is not a {words}, it's a {is_a}"):
        checked(tmp_path, type)


def test_a_type_that_has_no_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x")
    words = (
        f"hostPath type check failed, {tmp_path}/x is not a file, unable to determine its type: only recognise file,"
    )
    with pytest.raises(VolumeError, match=words):
        checked(tmp_path / "x", "File")


@pytest.mark.parametrize("type", ["Directory", "File", "Socket", "CharDevice", "BlockDevice"])
def test_what_is_not_there(tmp_path: Path, type: str) -> None:
    with pytest.raises(VolumeError, match=f"hostPath {tmp_path}/x doesn't exist"):
        checked(tmp_path / "x", type)


@pytest.mark.parametrize(("type", "mode"), [("DirectoryOrCreate", 0o40755), ("", 0o40755), ("FileOrCreate", 0o100644)])
def test_what_is_made(tmp_path: Path, type: str, mode: int) -> None:
    mask = os.umask(0o077)
    try:
        checked(tmp_path / "x", type)
    finally:
        os.umask(mask)
    assert (tmp_path / "x").stat().st_mode == mode


# --- emptyDir, fsGroup ---


@pytest.mark.parametrize(
    ("limit", "limits", "node", "expected"),
    [
        (None, (None,), None, 0),
        ("1Mi", (None,), None, MIB),
        ("4Mi", ("2Mi",), None, 2 * MIB),
        ("4Mi", ("1Mi", "2Mi"), None, 3 * MIB),
        ("4Mi", ("1Mi", None), None, 4 * MIB),
        (None, ("8Mi",), "5Mi", 5 * MIB),
        ("0", (None,), "5Mi", 5 * MIB),
    ],
)
def test_the_size_of_memory(limit: str | None, limits: tuple[str | None, ...], node: str | None, expected: int) -> None:
    containers = (
        container(f"c{number}", resources=ResourceRequirements(limits={"memory": of} if of else {}))
        for number, of in enumerate(limits)
    )
    source = EmptyDirVolumeSource(medium="Memory", size_limit=limit)
    assert memory_size_bytes(source, pod(*containers), {"memory": node} if node else {}) == expected


def test_a_note_of_a_group(tmp_path: Path) -> None:
    note = tmp_path / "plugins" / "ready"
    assert group_given(note) is None
    note_group(note, None)
    assert (note.exists(), group_given(note)) == (True, None)
    note_group(note, 2000)
    assert group_given(note) == 2000


@pytest.mark.parametrize(
    ("group", "noted", "expected"), [(None, None, True), (0, 0, True), (0, None, False), (2000, 2000, False)]
)
def test_whose_a_written_file_is(tmp_path: Path, group: int | None, noted: int | None, expected: bool) -> None:
    """A written file is of the agent's own group, which is 0 for containers."""
    place = VolumeDirectory(str(tmp_path), "uid", "configmap", "v")
    (place.path / "..1").mkdir(parents=True)
    (place.path / "..1" / "key").write_text("x")
    note_group(place.ready_file, noted)
    assert WrittenOwner(place=place, group=group, unshare=NOBODY).is_owned("..1") is expected
