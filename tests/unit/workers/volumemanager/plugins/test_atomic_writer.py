"""The atomic writer: what readers see at every moment, what a kill leaves, and what was planted."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.crashing_os import Killed, killed_at, watched
from tests.support.open_files import open_files, open_files_before
from workers.fs.directories import root_directory
from workers.volumemanager.plugins.atomic_writer import DATA, NEW_DATA, current_version, write_payload
from workers.volumemanager.plugins.payload import FileProjection, Payload, cleaned

WALL = 1_763_665_431.0
VERSION = re.compile(r"\.\.2025_11_20_19_03_51\.\d+")
NAMED_LIKE_A_VERSION = "..2025_01_01_00_00_00.1"


def payload(mode: int = 0o644, **files: str) -> Payload:
    """``a__b`` is a path ``a/b``."""
    return cleaned({path.replace("__", "/"): FileProjection(text.encode(), mode) for path, text in files.items()})


OLD = payload(a="old a", b="old b", gone="old", deep__x="old x", deep__gone="old", gone_too__x__y="old")
NEW = payload(a="new a", b="new b", come="new", deep__x="new x", deep__come="new", come_too__x__y="new")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    directory = tmp_path / "volume"
    directory.mkdir()
    return directory


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A directory that nobody may touch."""
    directory = tmp_path / "outside"
    (directory / "below").mkdir(parents=True)
    (directory / "a").write_text("outside")
    before = snapshot(directory)
    yield directory
    assert snapshot(directory) == before


def write(volume: Path, files: Payload, wall: float = WALL, mountpoints: tuple[str, ...] = ()) -> bool:
    with root_directory(str(volume)) as fd:
        return write_payload(fd, files, wall, mountpoints=mountpoints)


def shown(volume: Path) -> dict[str, str]:
    """As users see it: by the names that do not begin with two dots."""
    found = {}
    for name in (name for name in os.listdir(volume) if not name.startswith("..")):
        path = volume / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if not file.is_dir():
                found[str(file.relative_to(volume))] = file.read_text()
    return found


def texts(files: Payload) -> dict[str, str]:
    return {path: file.data.decode() for path, file in files.items()}


def snapshot(directory: Path) -> Mapping[str, tuple[int, int, int]]:
    """Numbers that change with every write, by path."""
    found = ((path, path.lstat()) for path in (directory, *directory.rglob("*")))
    return {str(path): (of.st_ino, of.st_ctime_ns, of.st_mode) for path, of in found}


def assert_holds(volume: Path, files: Payload) -> None:
    """Assert that it has those files and nothing else; what users do not see may have the version before, too."""
    assert shown(volume) == texts(files)
    [*before] = {name for name in os.listdir(volume) if name.startswith("..")} - {DATA, os.readlink(volume / DATA)}
    assert len(before) <= 1
    assert all(VERSION.fullmatch(name) for name in before)
    assert {name for name in os.listdir(volume) if not name.startswith("..")} == {path.split("/")[0] for path in files}
    for path, file in files.items():
        assert stat.S_IMODE((volume / path).stat().st_mode) == file.mode, path


# --- what is there -----------------------------------------------------------------------------------------------


def test_the_layout_is_upstreams(volume: Path) -> None:
    assert write(volume, payload(a="1", deep__x="2"))
    version = os.readlink(volume / DATA)
    assert VERSION.fullmatch(version)
    assert sorted(os.listdir(volume)) == sorted([DATA, version, "a", "deep"])
    assert os.readlink(volume / "a") == "..data/a"
    assert os.readlink(volume / "deep") == "..data/deep"
    assert (volume / version / "deep" / "x").read_text() == "2"
    assert stat.S_IMODE((volume / version).stat().st_mode) == 0o755


def test_modes_are_as_asked_whatever_the_umask(volume: Path) -> None:
    before = os.umask(0o077)
    try:
        write(volume, {**payload(a="1", deep__x="2"), **payload(0o400, b="3"), **payload(0o777, c="4")})
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((volume / name).stat().st_mode) for name in ("a", "deep", "deep/x", "b", "c", DATA)}
    assert modes == {"a": 0o644, "deep": 0o755, "deep/x": 0o644, "b": 0o400, "c": 0o777, DATA: 0o755}


def test_a_new_payload_replaces_the_old_one(volume: Path) -> None:
    write(volume, OLD)
    assert_holds(volume, OLD)
    assert write(volume, NEW)
    assert_holds(volume, NEW)


def test_the_version_before_stays_until_the_next_call(volume: Path) -> None:
    """Somebody may be on the way to a file in it."""
    write(volume, OLD)
    before = os.readlink(volume / DATA)
    write(volume, NEW)
    assert (volume / before / "a").read_text() == "old a"
    assert not write(volume, NEW)
    assert {name for name in os.listdir(volume) if name.startswith("..")} == {DATA, os.readlink(volume / DATA)}


@pytest.mark.parametrize("files", [OLD, payload(), payload(a=""), payload(0o000, a="x"), payload(0o222, a="x")])
def test_what_has_not_changed_is_not_written(volume: Path, files: Payload) -> None:
    assert write(volume, files)
    if all(file.mode & 0o400 for file in files.values()):
        with watched(lambda change: pytest.fail("something was changed")):
            assert not write(volume, files, WALL + 60)
    before = {path: of[0] for path, of in snapshot(volume).items()}
    assert not write(volume, files, WALL + 60)
    assert {path: of[0] for path, of in snapshot(volume).items()} == before
    assert {name: stat.S_IMODE((volume / name).stat().st_mode) for name in files} == {
        name: file.mode for name, file in files.items()
    }


@pytest.mark.parametrize(
    "files",
    [
        payload(a="1", b="2", deep__x="3!"),
        payload(a="1", b="2", deep__x="4"),
        payload(0o600, a="1", b="2", deep__x="3"),
        payload(a="1", b="2"),
        payload(a="1", b="2", deep__x="3", deep__y=""),
        payload(a="1", b="2", deep="3"),
        payload(a="1", b__x="2", deep__x="3"),
        payload(),
    ],
)
def test_every_change_is_written(volume: Path, files: Payload) -> None:
    write(volume, payload(a="1", b="2", deep__x="3"))
    assert write(volume, files)
    assert_holds(volume, files)


def test_versions_of_one_moment_have_different_names(volume: Path) -> None:
    names = set()
    for number in range(20):
        write(volume, payload(a=str(number)))
        names.add(os.readlink(volume / DATA))
    assert len(names) == 20


def test_an_owner_is_set_before_anybody_sees_it(volume: Path) -> None:
    write(volume, OLD)
    seen: list[object] = []

    def set_owner(version: str) -> None:
        seen.append((texts(OLD) == shown(volume), (volume / version / "come").read_text()))

    with root_directory(str(volume)) as fd:
        write_payload(fd, NEW, WALL, set_owner=set_owner)
        write_payload(fd, NEW, WALL, set_owner=set_owner)
        assert seen == [(True, "new")]
        assert write_payload(fd, NEW, WALL, is_owned=lambda version: False, set_owner=seen.append)
    assert seen[1:] == [os.readlink(volume / DATA)]


# --- readers and kills -------------------------------------------------------------------------------------------


def assert_no_mixture(volume: Path) -> None:
    """Assert what a reader may rely on at any moment."""
    version = volume / os.readlink(volume / DATA)
    files = {str(path.relative_to(version)): path.read_text() for path in version.rglob("*") if path.is_file()}
    assert files in (texts(OLD), texts(NEW)), "the version is neither the old one nor the new one"
    for path in OLD.keys() & NEW.keys():
        assert (volume / path).read_text() == files[path]
    for path, file in NEW.items():
        assert stat.S_IMODE((version / path).stat().st_mode) == file.mode if files == texts(NEW) else True


def test_no_moment_shows_a_mixture_or_a_gap(volume: Path) -> None:
    write(volume, OLD)
    with watched(lambda change: assert_no_mixture(volume)) as system:
        write(volume, NEW)
    assert system.changes > 30
    assert_holds(volume, NEW)


def made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def killed_in_the_middle(volume: Path, before: Payload | None, step: int) -> bool:
    """A write of NEW that does not get beyond that step; False when it has no such step."""
    if before is not None:
        write(volume, before)
    with killed_at(step) as system:
        try:
            write(volume, NEW)
        except Killed:
            return True
    assert system.changes == step
    return False


@pytest.mark.parametrize("after", [NEW, OLD, payload()])
def test_a_kill_at_any_step_leaves_the_old_or_the_new(tmp_path: Path, after: Payload) -> None:
    step = 0
    while killed_in_the_middle(volume := made(tmp_path / str(step)), OLD, step):
        assert_no_mixture(volume)
        write(volume, after)
        assert_holds(volume, after)
        assert not write(volume, after)
        step += 1
    assert step > 30


def test_a_kill_at_any_step_of_the_first_write_is_made_good(tmp_path: Path) -> None:
    step = 0
    while killed_in_the_middle(volume := made(tmp_path / str(step)), None, step):
        assert shown(volume).items() <= texts(NEW).items()
        write(volume, NEW)
        assert_holds(volume, NEW)
        step += 1
    assert step > 15


def test_two_kills_in_a_row_are_made_good(tmp_path: Path) -> None:
    for step in range(0, 40, 3):
        for again in range(0, 40, 4):
            volume = made(tmp_path / f"{step}-{again}")
            killed_in_the_middle(volume, OLD, step)
            killed_in_the_middle(volume, None, again)
            assert_no_mixture(volume)
            write(volume, NEW)
            assert_holds(volume, NEW)


NAMES = st.sampled_from(["a", "b", "deep/x", "deep/y", "deep/er/z", "c/d"])
PAYLOADS = st.dictionaries(
    NAMES, st.builds(FileProjection, st.binary(max_size=3), st.sampled_from([0o644, 0o400, 0o200, 0o000])), max_size=5
).map(cleaned)
LIVES = st.lists(st.tuples(PAYLOADS, st.integers(0, 60)), min_size=1, max_size=6)


@given(pod_table=LIVES)
def test_any_history_of_writes_and_kills(pod_table: list[tuple[Payload, int]]) -> None:
    """Each write may be killed at some step; what is shown is always one of the payloads, and never an older one than
    was shown before."""
    with tempfile.TemporaryDirectory() as directory:
        volume, newest = Path(directory), 0
        for number, (files, step) in enumerate(pod_table):
            with killed_at(step), contextlib.suppress(Killed):
                write(volume, files)
            newest = newest_shown(volume, [payload for payload, _ in pod_table[: number + 1]], newest)
        write(volume, pod_table[-1][0])
        assert not write(volume, pod_table[-1][0])
        with root_directory(directory) as fd:
            version = current_version(fd)
        assert version is not None
        assert names_below(volume / version) == pod_table[-1][0].keys()
        links = {path.split("/")[0] for path in pod_table[-1][0]}
        assert set(os.listdir(volume)) == {DATA, version, *links}


def names_below(version: Path) -> set[str]:
    return {str(path.relative_to(version)) for path in version.rglob("*") if not path.is_dir()}


def newest_shown(volume: Path, payloads: list[Payload], oldest: int) -> int:
    """Version that is shown, the last one if there are equal ones. Fails when it is older than that."""
    if not (volume / DATA).is_symlink():
        return 0
    version = volume / os.readlink(volume / DATA)
    for number in reversed(range(oldest, len(payloads))):
        sizes = {path: len(file.data) for path, file in payloads[number].items()}
        if {path: (version / path).stat().st_size for path in names_below(version)} == sizes:
            return number
    raise AssertionError("it shows none of them")


def test_a_full_disk_leaves_the_old(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(volume, OLD)

    def refuse(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("workers.volumemanager.plugins.atomic_writer.os.write", refuse)
        for _ in range(3):
            with pytest.raises(OSError, match="No space left"):
                write(volume, NEW)
    assert_no_mixture(volume)
    assert shown(volume) == texts(OLD)
    assert len([name for name in os.listdir(volume) if VERSION.fullmatch(name)]) == 2, "nothing piles up"
    write(volume, NEW)
    assert_holds(volume, NEW)


# --- what was planted --------------------------------------------------------------------------------------------


def replace_by_link(path: Path, target: Path | str) -> None:
    path.unlink()
    path.symlink_to(target)


@pytest.mark.parametrize("files", [OLD, NEW], ids=["unchanged", "changed"])
@pytest.mark.parametrize(
    "place",
    [
        "a",
        "deep",
        DATA,
        NEW_DATA,
        "..evil",
        NAMED_LIKE_A_VERSION,
        "evil",
        "come",
        "V/a",
        "V/deep",
        "V/deep/x",
        "V/evil",
    ],
)
@pytest.mark.parametrize("target", ["{outside}", "{outside}/a", "../outside", "..", ".", "nowhere"])
def test_a_planted_link_is_replaced_and_leads_nowhere(
    volume: Path, outside: Path, place: str, target: str, files: Payload
) -> None:
    write(volume, OLD)
    path = volume / place.replace("V", os.readlink(volume / DATA))
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        os.rename(path, volume.parent / "moved")
    path.symlink_to(target.format(outside=outside))
    write(volume, files)
    assert_holds(volume, files)


@pytest.mark.parametrize("kind", ["file", "fifo", "directory", "full directory"])
@pytest.mark.parametrize("place", ["a", "deep", DATA, NEW_DATA, "..evil", NAMED_LIKE_A_VERSION, "V/a", "V/evil"])
def test_what_else_was_planted_goes(volume: Path, place: str, kind: str) -> None:
    write(volume, OLD)
    path = volume / place.replace("V", os.readlink(volume / DATA))
    if path.is_symlink() or path.is_file():
        path.unlink()
    if kind == "file":
        path.write_text("evil")
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
        if kind == "full directory":
            (path / "a").write_text("evil")
    write(volume, NEW)
    assert_holds(volume, NEW)


@pytest.mark.parametrize("target", ["{volume}/V", "V/", "./V", "V/..", "../volume/V"])
def test_only_the_name_of_a_version_says_which_counts(volume: Path, target: str) -> None:
    write(volume, OLD)
    version = os.readlink(volume / DATA)
    replace_by_link(volume / DATA, target.format(volume=volume).replace("V", version))
    with root_directory(str(volume)) as fd:
        assert current_version(fd) is None
    assert write(volume, OLD)
    assert_holds(volume, OLD)


def test_a_link_to_an_equal_file_is_not_taken_for_ours(volume: Path, tmp_path: Path) -> None:
    write(volume, OLD)
    (tmp_path / "equal").write_text("old a")
    (tmp_path / "equal").chmod(0o644)
    replace_by_link(volume / os.readlink(volume / DATA) / "a", tmp_path / "equal")
    assert write(volume, OLD)
    assert not (volume / os.readlink(volume / DATA) / "a").is_symlink()


def test_a_hard_link_to_somebody_elses_file_is_not_taken_for_ours(volume: Path, tmp_path: Path) -> None:
    write(volume, OLD)
    version = volume / os.readlink(volume / DATA)
    (version / "a").unlink()
    (tmp_path / "shared").write_text("old a")
    (tmp_path / "shared").chmod(0o644)
    os.link(tmp_path / "shared", version / "a")
    assert write(volume, OLD)
    assert not write(volume, OLD)
    assert (tmp_path / "shared").stat().st_nlink == 1
    assert_holds(volume, OLD)


def test_a_changed_mode_and_a_changed_text_are_put_right(volume: Path) -> None:
    write(volume, OLD)
    (volume / "a").chmod(0o666)
    assert write(volume, OLD)
    (volume / "a").write_text("lod a")
    assert write(volume, OLD)
    assert_holds(volume, OLD)


def test_files_and_directories_of_others_stay(volume: Path) -> None:
    """A runtime makes such for what it mounts there; to remove one would take the mount from a running container."""
    write(volume, OLD)
    (volume / "mounted").mkdir()
    (volume / "mounted-file").write_text("")
    write(volume, NEW)
    assert (volume / "mounted").is_dir()
    assert (volume / "mounted-file").exists()


# --- mounts inside -----------------------------------------------------------------------------------------------


def test_mountpoints_are_made_and_stay(volume: Path) -> None:
    write(volume, OLD, mountpoints=("inner/deep", "other"))
    assert (volume / "inner" / "deep").is_dir()
    inode = (volume / "other").stat().st_ino
    write(volume, {**NEW, **payload(other="key")}, mountpoints=("inner/deep", "other"))
    assert (volume / "other").stat().st_ino == inode, "something is mounted on it"
    write(volume, {**NEW, **payload(other="key")})
    assert (volume / "other").read_text() == "key"


def test_a_key_is_no_mountpoint(volume: Path, outside: Path) -> None:
    write(volume, OLD, mountpoints=("a", "deep/x/y", "..data/a"))
    assert_holds(volume, OLD)
    (volume / "evil").symlink_to(outside)
    write(volume, OLD, mountpoints=("evil/below",))
    assert not (volume / "evil").is_symlink()
    (volume / "evil" / "below").rmdir()
    (volume / "evil" / "below").symlink_to(outside)
    with pytest.raises(NotADirectoryError):
        write(volume, OLD, mountpoints=("evil/below/new",))


# --- sizes -------------------------------------------------------------------------------------------------------


def test_a_mebibyte_and_ten_thousand_keys(volume: Path) -> None:
    large = payload(a="x" * (1 << 20))
    write(volume, large)
    assert_holds(volume, large)
    many = {f"key-{number}": FileProjection(str(number).encode(), 0o644) for number in range(10_000)}
    write(volume, many)
    assert_holds(volume, many)
    assert not write(volume, many)
    write(volume, OLD)
    assert_holds(volume, OLD)


def test_descriptors_are_closed(volume: Path) -> None:
    write(volume, OLD)
    before = open_files_before()
    for step in range(40):
        killed_in_the_middle(volume, OLD, step)
    assert open_files() == before
