"""The agent's own processes: the master's rows joined with the board and, when asked, with /proc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.link.messages.api_server import WorkerInfo
from ipc.link.shm.board import Board, WorkerRow
from workers.api_server.store.views import Resources, WorkerView
from workers.proc import usage

_NEVER: Final = 0.0


def worker_view(info: WorkerInfo, row: WorkerRow | None, now: float) -> WorkerView:
    """Joins the two when they tell of the same incarnation; ``now`` in monotonic seconds."""
    same = row is not None and row.pid == info.pid and row.incarnation == info.incarnation
    current = row if same else None
    beat = current.heartbeat if current else _NEVER
    return WorkerView(
        metadata=ObjectMeta(name=info.name),
        **msgspec.structs.asdict(info),
        heartbeat_age_seconds=max(0.0, now - beat) if beat != _NEVER else None,
        step=current.step if current else "",
        breaker=current.breaker.shown if current else "",
        counters=current.counters if current else None,
    )


def read_row(board: Board, slot: int) -> WorkerRow | None:
    """A worker's row; None for one that the board has no place for, or that wrote none yet."""
    return board.read_worker(slot) if 0 <= slot < board.worker_slots else None


def with_resources(views: Sequence[WorkerView]) -> list[WorkerView]:
    """The same rows with memory and CPU time. Reads /proc: not for the loop."""
    return [msgspec.structs.replace(v, resources=read_resources(v.pid) if v.pid > 0 else None) for v in views]


def read_resources(pid: int) -> Resources | None:
    """Memory and CPU time of a process; None when it is gone. Reads /proc: not for the loop."""
    used = usage.of(pid)
    return Resources(used.rss_bytes, usage.pss_bytes(pid), used.cpu_s) if used is not None else None
