"""The figures of a run, as JSON and for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ipc.text.human import mebibytes
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
    agent: Sequence[Usage]
    """The agent's processes: memory when all were Ready, CPU time from the first request until then."""
    podman: Sequence[Usage]
    """Processes that were started meanwhile beside the containers, by name."""
    problems: Sequence[str]

    @property
    def passed(self) -> bool:
        """All pods became Ready and are gone again."""
        return self.ready == self.pods and self.delete_s is not None and not self.problems


def as_json(report: Report) -> str:
    """One object, readable."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def as_text(report: Report) -> str:
    """Facts, then a table of processes."""
    facts = [
        ("Pods Ready", f"{report.ready} of {report.pods} ({report.containers} container(s) each, {report.image})"),
        ("First request to last Ready", _rate(report.all_ready_s, report.pods_per_second)),
        ("Time to Ready", _spread(report.time_to_ready_s)),
        ("Observation to status", _spread(report.observe_to_status_s)),
        ("First deletion to last end", _rate(report.delete_s, report.deleted_per_second)),
        ("Memory of the agent (PSS)", mebibytes(sum(u.pss_bytes for u in report.agent))),
        ("Memory of Podman's helpers (PSS)", mebibytes(sum(u.pss_bytes for u in report.podman))),
    ]
    width = max(len(title) for title, _ in facts) + 2
    lines = [f"{title + ':':{width}}{value}\n" for title, value in facts]
    table = TablePrinter(("PROCESS", "COUNT", "PID", "PSS", "UNREADABLE", "CPU"))
    rows = [_row(usage) for usage in (*report.agent, *report.podman)]
    problems = [f"problem: {problem}\n" for problem in report.problems[:MAX_PROBLEMS_SHOWN]]
    left_out = len(report.problems) - len(problems)
    more = f"problem: and {left_out} more\n" if left_out > 0 else ""
    return "".join(lines) + "\n" + table.format(rows) + "".join(problems) + more


def _row(usage: Usage) -> tuple[str, ...]:
    pid = str(usage.pid) if usage.pid else "-"
    cpu = f"{usage.cpu_seconds:.2f}s"
    return (usage.name, str(usage.count), pid, mebibytes(usage.pss_bytes), str(usage.unreadable), cpu)


def _rate(duration_s: float | None, per_second: float | None) -> str:
    return "-" if duration_s is None or per_second is None else f"{duration_s:.2f} s, {per_second:.2f} pods/s"


def _spread(found: Percentiles | None) -> str:
    return "-" if found is None else f"p50 {found.p50:.3f} s, p99 {found.p99:.3f} s ({found.samples} samples)"
