"""The table of the agent's own processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from supervisor.cli.printers.human import NONE

HEADER: Final = ("NAME", "ROLE", "STATUS", "PODS", "DEATHS", "PID", "HEARTBEAT", "BREAKER", "STEP")
COUNTED: Final = ("LIFE", "SYNCS", "ERRORS", "CALLS", "FAILED CALLS", "FAILED TASKS")
WIDE_HEADER: Final = (*HEADER[:-1], *COUNTED, "RSS", "PSS", "CPU", "STEP")

Json = Mapping[str, Any]


def worker_row(worker: Json, *, wide: bool = False) -> tuple[str, ...]:
    """One row under HEADER or WIDE_HEADER."""
    age_s = worker.get("heartbeatAgeSeconds")
    row = (
        worker["name"],
        worker["role"],
        worker["state"],
        str(worker["pods"]),
        str(worker["deaths"]),
        str(worker["pid"] or NONE),
        NONE if age_s is None else f"{age_s:.1f}s ago",
        worker.get("breaker") or NONE,
    )
    step = worker.get("step") or NONE
    return (*row, *_wide_cells(worker), step) if wide else (*row, step)


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


def mebibytes(count: int | None) -> str:
    """``12.3Mi``; ``<none>`` when not known."""
    return NONE if count is None else f"{count / 1024**2:.1f}Mi"
