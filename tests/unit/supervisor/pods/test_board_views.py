"""Observations with their content put on: inline or from the row, and never another pod's."""

from __future__ import annotations

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.link.messages.node_worker import Observation
from ipc.link.shm.board import Board
from supervisor.pods.board_views import resolve

SEEN = RuntimePodStatus(uid="a", name="web", observed_at=5.0)


def board(touched_at: float = 5.0) -> Board:
    made = Board.create(worker_slots=1, pod_rows=2)
    writer = made.pod_writer(0)
    assert writer.write("a", 5.0, msgspec.msgpack.encode(SEEN))
    assert writer.touch(touched_at)
    return made


def observation(uid: str, row: int, status: RuntimePodStatus | None = None, *, changed: bool = True) -> Observation:
    return Observation(uid=uid, observed_at=5.0, changed=changed, row=row, status=status)


def test_what_came_along_stays() -> None:
    inline = observation("a", -1, RuntimePodStatus(uid="a", observed_at=9.0))
    assert resolve(board(), [inline]) == (inline,)


def test_content_comes_from_the_row_with_the_row_s_date() -> None:
    [unchanged] = resolve(board(touched_at=7.0), [observation("a", 0, changed=False)])
    assert unchanged.status == msgspec.structs.replace(SEEN, observed_at=7.0)


def test_a_row_that_serves_another_pod_or_is_empty_gives_nothing() -> None:
    [other, empty] = resolve(board(), [observation("b", 0), observation("a", 1)])
    assert (other.status, empty.status) == (None, None)
