"""The event table (kubectl pkg/cmd/events, event_printer.go), and the events of a description."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.api.annotations import CONFIG_SEEN
from ipc.k8s.resources.times import NONE, since

HEADER: Final = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")


def event_row(event: Json, now: float) -> tuple[str, ...]:
    """One row under HEADER; ``now`` in epoch seconds."""
    about = event.get("involvedObject", {})
    what = f"{about.get('kind', '')}/{about.get('name', '')}"
    message = event.get("message", "").strip()
    return (last_seen(event, now), event.get("type", ""), event.get("reason", ""), what, message)


def last_seen(event: Json, now: float) -> str:
    """``10s``, or ``10s (x3 over 5m)`` for one that was seen again."""
    first = since(event.get("eventTime") or event.get("firstTimestamp"), now)
    count = count_of(event)
    if count <= 1:
        return first
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    return f"{since(last, now)} (x{count} over {first})"


def count_of(event: Json) -> int:
    """How often it was seen."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def source_of(event: Json) -> str:
    """The component that reported it."""
    return str(event.get("source", {}).get("component") or event.get("reportingComponent") or "")


def by_time(event: Json) -> tuple[str, int]:
    """Sort key of events: when the event was seen last, and within that second the order of the reports."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next(filter(None, times), ""), int(event["metadata"].get("resourceVersion") or 0)


def is_of(event: Json, pod: Json) -> bool:
    """Whether an event of the pod's UID is about this pod, and not about one before it. One that does not say of which
    it is (nobody knew a manifest) is of the pod that was there when it was seen last."""
    meta = pod["metadata"]
    first_seen = event["metadata"].get("annotations", {}).get(CONFIG_SEEN)
    if first_seen is None:
        return (event.get("lastTimestamp") or "") >= (meta.get("creationTimestamp") or "")
    return bool(first_seen == meta.get("annotations", {}).get(CONFIG_SEEN))


def event_lines(events: Iterable[Json], now: float) -> Iterator[str]:
    """The end of a description, with tabs between the cells (kubectl pkg/describe, DescribeEvents)."""
    found = sorted(events, key=by_time)
    if not found:
        yield f"Events:\t{NONE}"
        return
    yield from ("Events:", "  Type\tReason\tAge\tFrom\tMessage", "  ----\t------\t----\t----\t-------")
    for event in found:
        message, field = event.get("message", "").strip(), event.get("involvedObject", {}).get("fieldPath", "")
        text = f"{field}: {message}" if field else message
        cells = (event.get("type", ""), event.get("reason", ""), last_seen(event, now), source_of(event), text)
        yield "  " + "\t".join(cells)
