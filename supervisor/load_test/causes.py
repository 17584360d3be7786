"""Why pods of a load test did not become Ready, by their events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipc.text.json_types import Json


def causes(not_ready: Mapping[str, str], events: Iterable[Json]) -> list[str]:
    """A line for each pod, by name: what is known of it, and its newest warning."""
    newest: dict[str, Json] = {}
    for event in events:
        name = event.get("involvedObject", {}).get("name", "")
        if event.get("type") == "Warning" and name in not_ready and _seen(event) >= _seen(newest.get(name, {})):
            newest[name] = event
    return [f"{name}: {why}{_told(newest.get(name))}" for name, why in sorted(not_ready.items())]


def _seen(event: Json) -> str:
    return str(event.get("lastTimestamp") or "")


def _told(event: Json | None) -> str:
    return "" if event is None else f"; {event.get('reason')}: {event.get('message')}"
