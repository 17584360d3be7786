"""Adapters of the groups about tables and times that the command line prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ipc.host.text.human import human_duration, short_human_duration
from ipc.k8s.resources import registry
from ipc.k8s.resources.times import since
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, wall, without_nulls
from workers.api_server.printers.tables import ROWS

_CONDITION: Final = "conditions"


def _human_duration(case: Json) -> Result:
    return case["expected"], human_duration(case["seconds"])


def _print_timestamp(case: Json) -> Result:
    if case["direction"] == "until":
        raise Later("times until something: no table shows one")
    return case["expected"], since(case["timestamp"], wall(case["now"]))


def _short_human_duration(case: Json) -> Result:
    return case["expected"], short_human_duration(case["seconds"])


def _print_table(case: Json) -> Result:
    """Columns of ours, behind upstream's, are left out."""
    case.get(_CONDITION)
    kind = case["kind"].removesuffix("List")
    if kind not in registry.BY_KIND:
        raise Later(f"never: a table of {kind}s, which nothing here has")
    resource = registry.BY_KIND[kind]
    found = without_nulls(case["object"])
    objects = found["items"] if case["kind"] != kind else [found]
    shown = [number for number, column in enumerate(resource.columns) if case["wide"] or not column.priority]
    rows = [ROWS[resource.plural](_summarized(kind, each), wall(case["now"])) for each in objects]
    width = len(case["expected"][0])
    numbers = shown if len(shown) >= width else range(width)  # upstream's functions give some wide cells always
    return case["expected"], [[row[number] for number in numbers][:width] for row in rows]


def _summarized(kind: str, found: Any) -> Any:
    """Content of ConfigMaps and Secrets is not sent along to be printed."""
    if kind not in ("ConfigMap", "Secret"):
        return found
    return {
        **found,
        "keys": len({**found.get("data", {}), **found.get("binaryData", {}), **found.get("stringData", {})}),
    }


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "human_duration": _human_duration,
    "short_human_duration": _short_human_duration,
    "print_timestamp": _print_timestamp,
    "print_table": _print_table,
}
