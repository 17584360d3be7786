from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.shm.board import Board
from workers.pleg.publisher import Publisher


@pytest.fixture
def board() -> Board:
    return Board.create(worker_slots=1, pod_rows=4, pod_row_bytes=1024)


def status(observed_at: float, *ids: str, uid: str = "u1") -> RuntimePodStatus:
    containers = tuple(
        RuntimeContainerStatus(id=id, name="main", attempt=0, state=ContainerState.RUNNING) for id in ids
    )
    return RuntimePodStatus(uid=uid, observed_at=observed_at, containers=containers)


def on_row(board: Board, row: int) -> RuntimePodStatus | None:
    found = board.read_pod(row)
    if found is None:
        return None
    payload = msgspec.msgpack.decode(found.payload, type=RuntimePodStatus)
    return msgspec.structs.replace(payload, observed_at=found.observed_at)


def test_an_untracked_pod_travels_in_the_message(board: Board) -> None:
    published = Publisher(board)
    seen = published.record(status(1.0, "c1"))
    assert (seen.row, seen.status, seen.changed) == (-1, status(1.0, "c1"), True)
    again = published.record(status(2.0, "c1"))
    assert (again.status, again.changed) == (status(2.0, "c1"), False)


def test_a_tracked_pod_lies_on_its_row(board: Board) -> None:
    published = Publisher(board)
    published.track("u1", 2)
    assert on_row(board, 2) is None
    for moment, ids, changed in ((1.0, ("c1",), True), (2.0, ("c1",), False), (3.0, ("c1", "c2"), True)):
        seen = published.record(status(moment, *ids))
        assert (seen.row, seen.status, seen.changed, seen.observed_at) == (2, None, changed, moment)
        assert on_row(board, 2) == status(moment, *ids)


def test_an_absent_tracked_pod_lies_there_as_empty(board: Board) -> None:
    published = Publisher(board)
    published.track("u1", 0)
    assert published.record(status(1.0)).changed
    assert not published.record(status(2.0)).changed
    assert on_row(board, 0) == status(2.0)


def test_what_was_known_before_it_was_tracked_comes_to_the_row(board: Board) -> None:
    published = Publisher(board)
    published.record(status(1.0, "c1"))
    published.track("u1", 0)
    assert on_row(board, 0) == status(1.0, "c1")
    published.track("u1", 3)
    assert on_row(board, 0) is None
    assert on_row(board, 3) == status(1.0, "c1")


def test_a_row_that_is_too_small_is_left_empty(board: Board) -> None:
    published = Publisher(board)
    published.track("u1", 0)
    published.record(status(1.0, "c1"))
    large = status(2.0, *(f"{n:064}" for n in range(30)))
    for moment in (2.0, 3.0):
        seen = published.record(msgspec.structs.replace(large, observed_at=moment))
        assert seen.row == -1
        assert seen.status is not None
        assert seen.status.same_as(large)
        assert on_row(board, 0) is None
    assert published.record(status(4.0, "c1")).row == 0
    assert on_row(board, 0) == status(4.0, "c1")


def test_a_row_is_handed_on_empty(board: Board) -> None:
    published = Publisher(board)
    published.record(status(1.0, "c1"))
    published.track("u1", 0)
    published.untrack("u1")
    published.untrack("u1")
    assert on_row(board, 0) is None
    assert published.tracked == set()
    published.track("u2", 0)
    assert on_row(board, 0) is None


def test_another_writer_of_the_same_row_is_replaced_by_the_first_look(board: Board) -> None:
    """A node worker that died had written there: its content is nothing to the next one."""
    before = Publisher(board)
    before.track("u1", 0)
    before.record(status(1.0, "c1"))
    after = Publisher(board)
    after.track("u1", 0)
    assert on_row(board, 0) is None
    after.record(status(2.0, "c1"))
    assert on_row(board, 0) == status(2.0, "c1")


def test_a_row_that_is_not_there_is_a_mistake(board: Board) -> None:
    with pytest.raises(IndexError):
        Publisher(board).track("u1", 4)


def test_untracked_pods_are_forgotten_when_they_are_gone(board: Board) -> None:
    published = Publisher(board)
    for uid in ("u1", "u2", "u3"):
        published.record(status(1.0, "c1", uid=uid))
    published.track("u3", 0)
    published.retain({"u1"})
    assert not published.record(status(2.0, "c1", uid="u1")).changed
    assert published.record(status(2.0, "c1", uid="u2")).changed
    assert not published.record(status(2.0, "c1", uid="u3")).changed
    published.record(status(3.0, uid="u1"))
    assert published.record(status(4.0, "c1", uid="u1")).changed
