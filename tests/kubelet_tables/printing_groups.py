"""Adapters of the groups about what the command line prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from supervisor.cli.printers.config_objects import config_map_row, secret_row
from supervisor.cli.printers.describe import annotation_lines
from supervisor.cli.printers.describe_container import describe_container, port_texts
from ipc.resources.times import since
from ipc.text.human import human_duration
from supervisor.cli.printers.pods import pod_row
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, wall, without_nulls

_CONDITION: Final = "conditions"


def _human_duration(case: Json) -> Result:
    return case["expected"], human_duration(case["seconds"])


def _print_timestamp(case: Json) -> Result:
    if case["direction"] == "until":
        raise Later("times until something: no table shows one")
    return case["expected"], since(case["timestamp"], wall(case["now"]))


def _print_table(case: Json) -> Result:
    """Cells are texts here. Which pods are done is a column's affair upstream too, for others than `get`."""
    case.get(_CONDITION)
    if case["kind"] not in _ROWS:
        raise Later(f"a table of {case['kind']}s")
    row = _ROWS[case["kind"]](without_nulls(case["object"]), wall(case["now"]), case["wide"])
    return [[str(cell) for cell in row] for row in case["expected"]], [list(row)]


def _config_object(row: Callable[..., tuple[str, ...]]) -> Callable[[Any, float, bool], tuple[str, ...]]:
    """Ours is printed from a summary: content never leaves the agent."""

    def of(found: Any, now: float, wide: bool) -> tuple[str, ...]:
        keys = len({**found.get("data", {}), **found.get("binaryData", {}), **found.get("stringData", {})})
        return row({**found, "keys": keys}, now, wide=wide)

    return of


_ROWS: Final[Mapping[str, Callable[[Any, float, bool], tuple[str, ...]]]] = {
    "Pod": lambda found, now, wide: pod_row(found, now, wide=wide),
    "ConfigMap": _config_object(config_map_row),
    "Secret": _config_object(secret_row),
}


def _describe_container(case: Json) -> Result:
    """Every element is somewhere in the text."""
    text = "\n".join(
        describe_container(without_nulls(case["container"]), without_nulls(case["status"]), {"metadata": {}})
    )
    return [], [element for element in case["expected_elements"] if element not in text]


def _describe_container_ports(case: Json) -> Result:
    ports = without_nulls(case["ports"])
    got = tuple(port_texts(ports, field) for field in ("containerPort", "hostPort"))
    return (case["expected_container"], case["expected_host"]), got


def _describe_labels_multiline(case: Json) -> Result:
    return case["expect_print"], "".join(f"{line}\n" for line in annotation_lines(case["annotations"] or {}))


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "human_duration": _human_duration,
    "print_timestamp": _print_timestamp,
    "print_table": _print_table,
    "describe_container": _describe_container,
    "describe_container_ports": _describe_container_ports,
    "describe_labels_multiline": _describe_labels_multiline,
}
