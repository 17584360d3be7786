"""Rows of events (pkg/printers/internalversion/printers.go, printEvent)."""

from __future__ import annotations

from collections.abc import Sequence

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import since


def event_row(event: Json, now: float) -> Sequence[str | int]:
    """Cells of an event; ``now`` in epoch seconds."""
    about, series = event.get("involvedObject", {}), event.get("series") or {}
    first = event.get("firstTimestamp") or event.get("eventTime")
    last = series.get("lastObservedTime") if series else event.get("lastTimestamp")
    return (
        since(last or first, now),
        event.get("type", ""),
        event.get("reason", ""),
        "/".join(filter(None, (about.get("kind", "").lower(), about.get("name")))),
        about.get("fieldPath", ""),
        _source(event),
        event.get("message", "").strip(),
        since(first, now),
        series.get("count", 0) if series else event.get("count") or 1,
        event["metadata"].get("name", ""),
    )


def _source(event: Json) -> str:
    """(formatEventSource)"""
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def by_time(event: Json) -> tuple[str, int]:
    """Sort key of events: when the event was seen last, and within that second the order of the reports."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next(filter(None, times), ""), int(event["metadata"].get("resourceVersion") or 0)
