"""Reach of each network mode: the table of docs/network.md as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tests.drawing import Box, framed, head, path, text_at

ADDRESS: Final = "the pod's address"
_FROM_HOST: Final = "from the host to that address"
_BETWEEN: Final = "from another pod to that address"
_PUBLISHED: Final = "from other machines to a `hostPort`"
_OUT: Final = "from the pod to other machines"
_NAMES: Final = "pods find each other by name"
_PANEL: Final = 285
_STYLE: Final = ".no{stroke:#cf222e;stroke-dasharray:4 3}.yes{stroke:#1a7f37}.good{fill:#1a7f37}.bad{fill:#cf222e}"
_Point = tuple[float, float]


class Mode(NamedTuple):
    name: str
    cells: Mapping[str, str]
    """Row of the table -> its cell in the mode's column."""


def modes(page: str) -> list[Mode]:
    """The columns of the page's first table. Raises KeyError, when drawn, for a row that is not there."""
    section = page.partition("## What reaches what")[2].partition("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("|") and "---" not in line]
    heads, *rows = ([cell.strip() for cell in line.strip("|").split(" | ")] for line in lines)
    columns = [(at, name.strip("`")) for at, name in enumerate(heads) if name.strip("|")]
    return [Mode(name, {row[0]: row[at] for row in rows}) for at, name in columns]


def draw(page: str) -> Iterator[str]:
    """Lines of SVG."""
    found = modes(page)
    yield from head(_PANEL * len(found) + 10, 430, _STYLE)
    for at, mode in enumerate(found):
        yield from _panel(10 + at * _PANEL, mode)
    yield "</svg>"


def _panel(x: float, mode: Mode) -> Iterator[str]:
    world, host = Box(x, 40, 265, 36), Box(x, 130, 265, 230)
    first, other = Box(x + 14, 260, 100, 60), Box(x + 151, 260, 100, 60)
    yield text_at(x, 24, mode.name, "name")
    yield from framed(world, "other machines")
    yield from framed(host, "the host", kind="lazy")
    yield from framed(first, "a pod")
    yield from framed(other, "another pod")
    yield text_at(x + 14, 340, f"address: {_short(mode.cells[ADDRESS])}", "small")
    yield from _reach(mode, _PUBLISHED, "hostPort", (x + 74, world.below), (x + 74, first.y), (x + 18, 200))
    yield from _reach(mode, _OUT, "out", (x + 104, first.y), (x + 104, world.below), (x + 109, 230))
    yield from _reach(mode, _FROM_HOST, "to its address", (x + 158, host.y + 30), (x + 158, other.y), (x + 162, 200))
    yield from _reach(mode, _BETWEEN, "", (first.x + first.width, 290), (other.x, 290), (0, 0))
    yield from _told(mode, x)


def _reach(mode: Mode, row: str, what: str, start: _Point, end: _Point, label: _Point) -> Iterator[str]:
    is_there = mode.cells[row].startswith("yes")
    yield path(start, end, kind="yes" if is_there else "no")
    if what:
        yield text_at(*label, what if is_there else f"{what}: no", "small")


def _told(mode: Mode, x: float) -> Iterator[str]:
    """Two lines of words below the panel."""
    between, names = mode.cells[_BETWEEN], mode.cells[_NAMES]
    words = between if between.startswith("yes") else "no"
    yield text_at(x, 384, f"pod to pod: {words}", "small good" if words != "no" else "small bad")
    yield text_at(x, 402, f"by name: {names}", "small bad" if names == "no" else "small good")


def _short(address: str) -> str:
    return address.partition(", the same")[0] + (" in every pod" if ", the same" in address else "")
