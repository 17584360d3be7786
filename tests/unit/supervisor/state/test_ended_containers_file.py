"""Ends of containers on disk: whatever becomes of the file, the agent starts, and nothing that is whole is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.k8s.kubecontainer.pod_status import CONTAINER_STATUS_UNKNOWN, ContainerState, RuntimeContainerStatus
from ipc.k8s.kubecontainer.remembered_ends import NO_RECORD, RememberedPod
from supervisor.state import ends_journal
from supervisor.state.ended_containers_file import MAX_FILE_BYTES, EndedContainersFile
from supervisor.state.ends_journal import MAX_LINE_BYTES, decode_journal, encode_journal, encode_lines

DATE = 1_800_000_000.0


def end(id: str, **fields: Any) -> RuntimeContainerStatus:
    known = {"name": "main", "attempt": 0, "exit_code": 3, "finished_at": DATE}
    return RuntimeContainerStatus(id=id, state=ContainerState.EXITED, **{**known, **fields})


ONE: Final = {"u1": RememberedPod((end("a", message="line\nline \ud7ff"),))}
TWO: Final = {"u2": RememberedPod((end("b"), end("c", attempt=1)), began_at=DATE - 5)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ended_containers"


def written(path: Path) -> EndedContainersFile:
    file = EndedContainersFile(path)
    file.write(ONE, ONE)
    file.write(TWO, ONE | TWO)
    return file


def test_what_was_written_is_there_for_the_next_agent(path: Path) -> None:
    file = written(path)
    assert EndedContainersFile(path).load().pods == ONE | TWO
    file.write({"u1": NO_RECORD}, TWO)
    assert EndedContainersFile(path).load().pods == TWO
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_sign_of_life_changes_the_date_alone(path: Path) -> None:
    written(path)
    before = path.read_bytes()
    os.utime(path, (1, 1))
    next_one = EndedContainersFile(path)
    assert next_one.load().alive_at == 1
    next_one.write({}, {})
    assert path.read_bytes() == before, "before its ends are known nothing is written"
    assert next_one.load().alive_at > 1


def test_it_is_written_anew_when_most_of_it_is_old(path: Path) -> None:
    file = written(path)
    for number in range(1000):
        many = {"u1": RememberedPod((end("a", message="x" * 4000, exit_code=number),))}
        file.write(many, many)
    assert path.stat().st_size < 300 << 10
    assert EndedContainersFile(path).load().pods == many


@given(st.data())
def test_a_torn_end_costs_the_last_change_at_most(data: st.DataObject) -> None:
    whole = encode_journal(ONE) + encode_lines(TWO)
    cut = data.draw(st.integers(len(encode_journal(ONE)), len(whole) - 1))
    found = decode_journal(whole[:cut])
    assert (found.pods, found.damaged) == (ONE, ())


@given(st.data())
def test_a_byte_that_changed_costs_one_line(data: st.DataObject) -> None:
    whole = bytearray(encode_journal(ONE) + encode_lines(TWO))
    at = data.draw(st.integers(whole.index(b"\n") + 1, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    pods = decode_journal(bytes(whole)).pods
    assert pods.items() <= (ONE | TWO).items()
    assert pods or whole.count(b"\n") < 3


@given(st.binary(max_size=300))
def test_no_bytes_are_too_bad(data: bytes) -> None:
    assert decode_journal(data).pods == {}


def test_a_line_is_bounded() -> None:
    large = {
        "u1": RememberedPod((end("a", message="x" * MAX_LINE_BYTES),)),
        "u2": RememberedPod((end("b", image="x" * MAX_LINE_BYTES),)),
    }
    assert decode_journal(encode_journal(large)).pods == {"u1": RememberedPod((end("a"),))}


def test_of_too_many_pods_those_stay_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"u3": RememberedPod((end("d", exit_code=137, reason=CONTAINER_STATUS_UNKNOWN, finished_at=0.0),))}
    monkeypatch.setattr(ends_journal, "MAX_LIVE_BYTES", len(encode_lines(runs)))
    assert decode_journal(encode_journal(ONE | runs | TWO)).pods == runs


def _damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"main", b"ma\xffn", 1))


def _of_another_version(path: Path) -> None:
    path.write_bytes(b"not a journal\n" + path.read_bytes().split(b"\n", 1)[1])


def _sparse(path: Path) -> None:
    os.truncate(path, MAX_FILE_BYTES + 1)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _unreadable(path: Path) -> None:
    path.chmod(0)


@pytest.mark.parametrize(
    "harm",
    [_damaged, _of_another_version, _sparse, _pipe, _directory, _link, _unreadable],
    ids=lambda harm: harm.__name__,
)
def test_a_file_that_was_harmed_is_told_moved_aside_and_written_anew(
    path: Path, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    written(path)
    harm(path)
    file = EndedContainersFile(path)
    file.load()
    if harm is not _unreadable or os.geteuid():
        assert "ended_containers.refused" in caplog.text
        assert os.path.lexists(path.with_name("ended_containers.refused"))
    file.write(TWO, TWO)
    assert EndedContainersFile(path).load().pods == TWO
