"""Waiting of one start, restart and stop, out of traces of `rootlet load-test --trace FILE`.

    python -m tests.bench.trace_table trace.json [another.json ...]

For each of the three: what happened to a pod between its begin and its end as the client saw them, by process and name,
medians over the pods of all traces. A wait and what fills it are both shown (a sync and its calls of Podman), so the
columns do not add up.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

CLIENT: Final = "load-test"
ACTS: Final = ("start", "restart", "stop")
MICROS_PER_MS: Final = 1000

Event = Mapping[str, Any]
What = tuple[str, str]
"""Process and name of a span."""


class Part(NamedTuple):
    """Waiting of one sort that a pod met within one act."""

    first_ms: float
    """From the begin of the act until the first began."""
    total_ms: float
    cpu_ms: float
    times: int


def parts_of(events: Sequence[Event], act: str) -> dict[What, list[Part]]:
    """By process and span: one part for each pod that met it."""
    spans = [event for event in events if event["ph"] in "Xi"]
    windows = {e["args"]["pod"]: e for e in spans if e["cat"] == CLIENT and e["name"] == act}
    found: dict[What, dict[str, list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in spans:
        window = windows.get(event["args"]["pod"])
        if window is not None and window["ts"] <= event["ts"] <= window["ts"] + window["dur"]:
            found[event["cat"], event["name"]][event["args"]["pod"]].append(event)
    return {what: [_part(of_pod, windows[pod]["ts"]) for pod, of_pod in pods.items()] for what, pods in found.items()}


def _part(events: Sequence[Event], begin: float) -> Part:
    total = sum(event.get("dur", 0.0) for event in events)
    cpu_ms = sum(event["args"].get("cpu ms", 0.0) for event in events)
    first = min(event["ts"] for event in events) - begin
    return Part(first / MICROS_PER_MS, total / MICROS_PER_MS, cpu_ms, len(events))


def lines(traces: Sequence[Sequence[Event]], act: str) -> Iterator[str]:
    """A table in Markdown, in the order of time."""
    yield f"| {act}: at, ms | process | what | times | ms | CPU ms |"
    yield "| --- | --- | --- | --- | --- | --- |"
    parts: dict[What, list[Part]] = defaultdict(list)
    for events in traces:
        for what, of_pods in parts_of(events, act).items():
            parts[what] += of_pods
    for (process, name), met in sorted(parts.items(), key=lambda item: _median(item[1], "first_ms")):
        at, total, cpu = (_median(met, field) for field in ("first_ms", "total_ms", "cpu_ms"))
        times = statistics.median(part.times for part in met)
        yield f"| {at:.1f} | {process} | {name} | {times:g} | {total:.1f} | {cpu:.2f} |"


def _median(parts: Sequence[Part], field: str) -> float:
    return float(statistics.median(getattr(part, field) for part in parts))


def main() -> None:
    traces = [json.loads(Path(name).read_text())["traceEvents"] for name in sys.argv[1:]]
    for act in ACTS:
        print("\n".join(lines(traces, act)), end="\n\n")


if __name__ == "__main__":
    main()
