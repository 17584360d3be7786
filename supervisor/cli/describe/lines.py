"""Lines of a description: labels, annotations, lists below a title, and how they line up (kubectl pkg/describe).

A tab in a line ends a cell of a column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ipc.k8s.api.annotations import LAST_APPLIED
from ipc.k8s.resources.times import NONE
from supervisor.cli.printers.tables import align_tabs, printable

MAX_ANNOTATION_CHARS: Final = 140
"""A longer annotation gets lines of its own, cut there (describe.go, maxAnnotationLen)."""


def aligned(lines: Iterable[str]) -> str:
    """The description, where nothing steers a terminal and cells of a column begin below one another."""
    return align_tabs("\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)) + "\n"


def pair_lines(title: str, pairs: Mapping[str, str]) -> Iterator[str]:
    """One ``key=value`` per line, in the order of the keys."""
    yield from titled_lines(title, [f"{key}={pairs[key]}" for key in sorted(pairs)])


def label_lines(labels: Mapping[str, str]) -> Iterator[str]:
    """One label per line (printLabelsMultiline)."""
    yield from pair_lines("Labels", labels)


def titled_lines(title: str, values: list[str]) -> Iterator[str]:
    """The title before the first value, nothing before the others."""
    head, *tail = values or [NONE]
    yield f"{title}:\t{head}"
    yield from (f"\t{value}" for value in tail)


def annotation_lines(annotations: Mapping[str, str]) -> Iterator[str]:
    """One annotation per line, long and multi-line values below their key (printAnnotationsMultiline)."""
    lines = [line for key in sorted(annotations) for line in _annotation(key, annotations[key])]
    yield from titled_lines("Annotations", lines)


def _annotation(key: str, text: str) -> list[str]:
    if key == LAST_APPLIED:
        return []
    value = text.removesuffix("\n")
    if len(value) + len(key) + 2 <= MAX_ANNOTATION_CHARS and "\n" not in value:
        return [f"{key}: {value}"]
    width = MAX_ANNOTATION_CHARS - 2
    return [f"{key}:", *(f"  {line[:width]}{'...' if len(line) > width else ''}" for line in value.split("\n"))]
