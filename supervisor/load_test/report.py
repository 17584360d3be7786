"""The figures of a run, as JSON and for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ipc.host.text.human import mebibytes
from supervisor.cli.printers.tables import TablePrinter
from supervisor.load_test.measure import Percentiles
from supervisor.load_test.processes import Usage

MAX_PROBLEMS_SHOWN: Final = 10


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run. Durations in seconds."""

    run: str
    pods: int
    containers: int
    """Per pod."""
    image: str
    agent_version: str
    podman_version: str
    ready: int
    all_ready_s: float | None = msgspec.field(name="allReadySeconds")
    """From the first request to the last pod's Ready; null unless all are."""
    pods_per_second: float | None
    time_to_ready_s: Percentiles | None = msgspec.field(name="timeToReadySeconds")
    """Per pod, from the request that creates it to the watch event that says Ready."""
    observe_to_status_s: Percentiles | None = msgspec.field(name="observeToStatusSeconds")
    """From the begin of an observation to the arrival here of the status made of it, until the pod is deleted; null
    when not stamped."""
    delete_s: float | None = msgspec.field(name="deleteSeconds")
    """From the first deletion to the last pod's end; null when some are left."""
    deleted_per_second: float | None
    floor_s: float | None = msgspec.field(name="floorSeconds", default=None)
    """Start of the same pods by bare calls of libpod, in the same run; null when it was not measured."""
    ready_at_s: Sequence[float] = msgspec.field(name="readyAtSeconds", default=())
    """When each pod became Ready, from the first request on, in order."""
    times_to_ready_s: Sequence[float] = msgspec.field(name="timesToReadySeconds", default=())
    """Per pod, in order."""
    agent: Sequence[Usage]
    """The agent's processes: memory when all were Ready, CPU time from the first request until then."""
    podman: Sequence[Usage]
    """Processes that were started meanwhile beside the containers, by name."""
    problems: Sequence[str]

    @property
    def passed(self) -> bool:
        """All pods became Ready and are gone again."""
        return self.ready == self.pods and self.delete_s is not None and not self.problems

    @property
    def processes(self) -> Sequence[Usage]:
        """Usage of every process, the agent's first."""
        return (*self.agent, *self.podman)


def verdict(report: Report) -> str:
    """The run in a sentence or two."""
    if not report.passed:
        return f"FAILED: {report.ready} of {report.pods} pods became Ready{_left(report)}."
    said = f"PASSED: {report.pods} pods became Ready at {report.pods_per_second or 0.0:.2f} pods/s, and are gone again."
    if not report.floor_s or not report.all_ready_s:
        return said
    floor = f"Podman alone starts them at {report.pods / report.floor_s:.2f} pods/s"
    return f"{said} {floor}: the agent has {report.floor_s / report.all_ready_s:.2f} of that."


def _left(report: Report) -> str:
    return ", and some are left" if report.delete_s is None else ""


def as_json(report: Report) -> str:
    """One object, readable."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def as_text(report: Report) -> str:
    """Facts, a table of processes, and the verdict."""
    told = facts(report)
    width = max(len(title) for title, _ in told) + 2
    lines = [f"{title + ':':{width}}{value}\n" for title, value in told]
    table = TablePrinter(("PROCESS", "COUNT", "PID", "PSS", "UNREADABLE", "CPU"))
    problems = [f"problem: {problem}\n" for problem in report.problems[:MAX_PROBLEMS_SHOWN]]
    left_out = len(report.problems) - len(problems)
    more = f"problem: and {left_out} more\n" if left_out > 0 else ""
    body = table.format([_row(usage) for usage in report.processes])
    return "".join(lines) + "\n" + body + "".join(problems) + more + f"\n{verdict(report)}\n"


def facts(report: Report) -> list[tuple[str, str]]:
    """Figures with their titles."""
    floor = (
        [("Podman alone, first call to last start", _rate(report.floor_s, report.pods / report.floor_s))]
        if report.floor_s
        else []
    )
    return [
        ("Pods Ready", f"{report.ready} of {report.pods} ({report.containers} container(s) each, {report.image})"),
        ("First request to last Ready", _rate(report.all_ready_s, report.pods_per_second)),
        *floor,
        ("Time to Ready", _spread(report.time_to_ready_s)),
        ("Observation to status", _spread(report.observe_to_status_s)),
        ("First deletion to last end", _rate(report.delete_s, report.deleted_per_second)),
        ("Memory of the agent (PSS)", mebibytes(sum(u.pss_bytes for u in report.agent))),
        ("Memory of Podman's helpers (PSS)", mebibytes(sum(u.pss_bytes for u in report.podman))),
    ]


def _row(usage: Usage) -> tuple[str, ...]:
    pid = str(usage.pid) if usage.pid else "-"
    cpu = f"{usage.cpu_seconds:.2f}s"
    return (usage.name, str(usage.count), pid, mebibytes(usage.pss_bytes), str(usage.unreadable), cpu)


def _rate(duration_s: float | None, per_second: float | None) -> str:
    return "-" if duration_s is None or per_second is None else f"{duration_s:.2f} s, {per_second:.2f} pods/s"


def _spread(found: Percentiles | None) -> str:
    return "-" if found is None else f"p50 {found.p50:.3f} s, p99 {found.p99:.3f} s ({found.samples} samples)"
