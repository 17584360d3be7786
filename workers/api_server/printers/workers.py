"""Rows of the agent's own processes."""

from __future__ import annotations

from collections.abc import Sequence

from ipc.host.text.human import mebibytes
from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE


def worker_row(worker: Json, now: float) -> Sequence[str | int]:
    """Cells of a process of the agent: its view is as new as the request."""
    age_s = worker.get("heartbeatAgeSeconds")
    return (
        worker["name"],
        worker["role"],
        worker["state"],
        worker["pods"],
        worker["deaths"],
        worker["pid"] or NONE,
        NONE if age_s is None else f"{age_s:.1f}s ago",
        worker.get("breaker") or NONE,
        *_wide_cells(worker),
        worker.get("step") or NONE,
    )


def _wide_cells(worker: Json) -> tuple[str, ...]:
    counters, resources = worker.get("counters") or {}, worker.get("resources") or {}
    names = ("syncs", "sync_errors", "runtime_calls", "runtime_errors", "task_errors")
    cpu_s = resources.get("cpuSeconds")
    return (
        str(worker["incarnation"]),
        *(str(counters.get(name, NONE)) for name in names),
        mebibytes(resources.get("rssBytes")),
        mebibytes(resources.get("pssBytes")),
        NONE if cpu_s is None else f"{cpu_s:.2f}s",
    )
