"""The agent's own files go away while it runs: they are written again and told once, on a real disk."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from supervisor import state_watch
from supervisor.loop_checkpoints import FILES
from supervisor.processes.podman_service import CONF_FILE, CONMON_FILE
from supervisor.state.directory_owner import OWNER_FILE
from supervisor.state.remembered_files import MAX_BYTES, RememberedFiles
from supervisor.state_watch import REMEMBERED, WRITTEN_ANEW, StateWatch
from tests.integration.supervisor.test_loop_checkpoints import checkpoints_of
from tests.support.dialogue import Talk


class Sources:
    """Notes whether everything was asked for; has lost files of its own."""

    def __init__(self) -> None:
        self.asked: list[bool] = []
        self.lost: tuple[Path, ...] = ()

    async def keep_files(self, *, anew: bool) -> tuple[Path, ...]:
        self.asked.append(anew)
        lost, self.lost = self.lost, ()
        return lost


def full(state: Path) -> None:
    state.mkdir(exist_ok=True)
    for name in (*REMEMBERED, *WRITTEN_ANEW, OWNER_FILE):
        (state / name).write_text(name)
        (state / name).chmod(0o700 if name == CONMON_FILE else 0o600)
    (state / "pods").mkdir()


def watch_over(tmp_path: Path, sources: Sources) -> tuple[StateWatch, Talk]:
    talk = Talk(state_dir=tmp_path / "state", pod_logs_dir=tmp_path / "logs", memory_dir=tmp_path / "memory")
    return StateWatch(talk.settings, checkpoints_of(talk), sources), talk


def _remove(state: Path) -> None:
    shutil.rmtree(state)


def _empty(state: Path) -> None:
    shutil.rmtree(state)
    state.mkdir()


@pytest.mark.parametrize("vanish", [_remove, _empty])
async def test_what_was_written_at_the_start_is_written_again_and_told_once(
    tmp_path: Path, vanish: Callable[[Path], None]
) -> None:
    state, sources = tmp_path / "state", Sources()
    full(state)
    watch, _ = watch_over(tmp_path, sources)
    assert await watch.look() == ""
    vanish(state)
    sources.lost = (state / "applied" / "default.web.json",)
    words = await watch.look()
    assert words.startswith(f"files went away from {state}: written again: ")
    assert "applied/default.web.json" in words
    assert words.endswith("lost: pods")
    (state / "pods").mkdir()
    assert await watch.look() == ""
    assert sources.asked == [False, True, False]
    for name in (*REMEMBERED, OWNER_FILE):
        assert (state / name).read_text() == name
    assert os.access(state / CONMON_FILE, os.X_OK)


@pytest.mark.parametrize("name", [*REMEMBERED, *WRITTEN_ANEW, OWNER_FILE])
async def test_each_file_alone(tmp_path: Path, name: str) -> None:
    state = tmp_path / "state"
    full(state)
    watch, _ = watch_over(tmp_path, Sources())
    await watch.look()
    (state / name).unlink()
    assert await watch.look() == f"files went away from {state}: written again: {name}"
    assert (state / name).exists() or name in WRITTEN_ANEW


MEANT = (
    "kubelet.conf",
    "bootstrap-kubelet.conf",
    "pki/ca.crt",
    "pki/kubelet-client-current.pem",
    "seccomp/profiles/audit.json",
    "pulled-images/0123",
)
"""Files that somebody may remove, too."""


def _write_meant(state: Path, more: Mapping[str, str] | None = None) -> None:
    for name, text in {**dict(zip(MEANT, MEANT, strict=True)), **(more or {})}.items():
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).write_text(text)


async def _looked_at(tmp_path: Path, more: Mapping[str, str] | None = None) -> tuple[Path, StateWatch]:
    """A full state directory with these files, too, and who has seen it."""
    state = tmp_path / "state"
    full(state)
    _write_meant(state, more)
    watch, _ = watch_over(tmp_path, Sources())
    await watch.look()
    return state, watch


def _pki(state: Path) -> None:
    shutil.rmtree(state / "pki")


def _made_anew(state: Path) -> None:
    """Emptied, and a worker has made itself a certificate before anybody has looked."""
    _empty(state)
    (state / "pki").mkdir()
    (state / "pki" / "kubelet.pem").write_text("made anew")


@pytest.mark.parametrize("vanish", [_remove, _empty, _made_anew, _pki])
async def test_what_went_with_its_directory_is_written_again(tmp_path: Path, vanish: Callable[[Path], None]) -> None:
    state, watch = await _looked_at(tmp_path, {"pki/kubelet.pem": "made first"})
    vanish(state)
    words = await watch.look()
    again, _, lost = words.partition("lost: ")
    assert "pki/ca.crt, pki/kubelet-client-current.pem" in again
    assert lost == ("" if vanish is _pki else "pods")
    assert [(state / name).read_text() for name in MEANT] == list(MEANT)
    assert (state / "pki" / "kubelet.pem").read_text() == ("made anew" if vanish is _made_anew else "made first")
    assert await watch.look() == ""


async def test_what_somebody_removes_alone_stays_removed(tmp_path: Path) -> None:
    """`rootlet leave` removes each file of the identity; also where the whole directory goes away later."""
    state, watch = await _looked_at(tmp_path)
    for name in MEANT:
        (state / name).unlink()
    assert (await watch.look(), await watch.look()) == ("", "")
    _empty(state)
    await watch.look()
    assert not [name for name in MEANT if (state / name).exists()]


async def test_a_directory_that_goes_away_slowly_is_no_file_that_is_removed_alone(tmp_path: Path) -> None:
    state, watch = await _looked_at(tmp_path)
    for name in MEANT:
        (state / name).unlink()
    await watch.look()
    _remove(state)
    await watch.look()
    assert [(state / name).read_text() for name in MEANT] == list(MEANT)


async def test_a_disk_that_takes_a_part_gets_the_rest_later(tmp_path: Path) -> None:
    state, watch = await _looked_at(tmp_path)
    _empty(state)
    (state / "seccomp").write_text("in the way")
    for _ in range(3):
        await watch.look()
    assert not (state / OWNER_FILE).exists()
    (state / "seccomp").unlink()
    await watch.look()
    assert [(state / name).read_text() for name in (*MEANT, OWNER_FILE)] == [*MEANT, OWNER_FILE]


async def test_a_file_for_which_there_is_no_room_is_told_as_lost_once(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    full(state)
    _write_meant(state)
    (state / "seccomp" / "huge.json").touch()
    os.truncate(state / "seccomp" / "huge.json", MAX_BYTES + 1)
    watch, _ = watch_over(tmp_path, Sources())
    await watch.look()
    _remove(state)
    assert (await watch.look()).endswith("; lost: pods, seccomp/huge.json")
    assert (await watch.look(), await watch.look()) == ("", "")


def test_room_is_given_back(tmp_path: Path) -> None:
    files, path = RememberedFiles(max_bytes=10), tmp_path / "file"
    for content in ("1234567890", "12345", "1234567890"):
        path.unlink(missing_ok=True)
        path.write_text(content)
        files.look([path])
        path.unlink()
        assert files.write(files.look()) == ()
        assert path.read_text() == content
    files.discard(path)
    other = tmp_path / "other"
    other.write_text("0987654321")
    files.look([other])
    other.unlink()
    assert files.write(files.look()) == ()
    assert other.read_text() == "0987654321"


async def test_a_directory_that_was_made_anew_meanwhile_is_told(tmp_path: Path) -> None:
    state = tmp_path / "state"
    full(state)
    watch, _ = watch_over(tmp_path, Sources())
    await watch.look()
    (state / "pods").rename(state / "other")
    (state / "pods").mkdir()
    assert await watch.look() == f"files went away from {state}: lost: pods"
    assert await watch.look() == ""


@pytest.mark.parametrize("instead", ["nothing in it", "a directory", "a FIFO"])
async def test_what_is_no_file_any_more_is_written_again(tmp_path: Path, instead: str) -> None:
    state = tmp_path / "state"
    full(state)
    files = RememberedFiles()
    assert files.look([state / CONF_FILE]) == ()
    (state / CONF_FILE).unlink()
    if instead == "a directory":
        (state / CONF_FILE).mkdir()
    elif instead == "a FIFO":
        os.mkfifo(state / CONF_FILE)
    else:
        (state / CONF_FILE).touch()
    assert files.look() == (state / CONF_FILE,)
    files.write(files.look())
    assert (state / CONF_FILE).read_text() == CONF_FILE


async def test_a_disk_that_takes_nothing_is_told_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "state"
    full(state)
    watch, _ = watch_over(tmp_path, Sources())
    await watch.look()
    shutil.rmtree(state)
    state.write_text("in the way")
    with caplog.at_level(logging.ERROR, state_watch.__name__):
        await watch.look()
        await watch.look()
    assert len(caplog.records) == 1
    state.unlink()
    await watch.look()
    assert (state / CONF_FILE).read_text() == CONF_FILE


def test_checkpoints_that_went_away_are_written_without_a_change(tmp_path: Path) -> None:
    async def write() -> None:
        checkpoints = checkpoints_of(Talk(state_dir=tmp_path))
        checkpoints.write_again()
        await checkpoints.close()

    asyncio.run(write())
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)
