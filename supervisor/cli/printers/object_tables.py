"""Rows that the server has made, laid out as text (cli-runtime pkg/printers, tableprinter.go)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import NONE
from supervisor.cli.printers.tables import TablePrinter
from supervisor.client.tables import CELLS

_BREAK: Final = re.compile(r"[\f\n\r]")


class TableStyle(msgspec.Struct, frozen=True, kw_only=True):
    """Choice of what is shown of the columns that the server has said."""

    wide: bool = False
    headers: bool = True
    with_namespace: bool = False
    kind: str = ""
    """Comes before each name, as in ``pod/web``; empty for none."""
    label_columns: tuple[str, ...] = ()
    show_labels: bool = False
    show_events: bool = False
    """Begin with the type of the event, of a watch."""


class ObjectTable:
    """Text of rows of one kind; later rows line up with earlier ones."""

    def __init__(self, columns: Sequence[Json], style: TableStyle) -> None:
        shown = [number for number, column in enumerate(columns) if style.wide or not column.get("priority")]
        self._style = style
        self._cells = tuple(shown)
        self._name = next((number for number in shown if columns[number].get("format") == "name"), None)
        header = (
            *(("EVENT",) if style.show_events else ()),
            *(("NAMESPACE",) if style.with_namespace else ()),
            *(str(columns[number]["name"]).upper() for number in shown),
            *(label.rpartition("/")[2].upper() for label in style.label_columns),
            *(("LABELS",) if style.show_labels else ()),
        )
        self._table = TablePrinter(header, show_header=style.headers)

    def format(self, objects: Iterable[Json], event: str = "") -> str:
        """Lines of these rows; ``event`` is the type of what has happened to them."""
        return self._table.format(self._row(each, event) for each in objects)

    def _row(self, row: Json, event: str) -> Sequence[str]:
        style, meta = self._style, row["metadata"]
        labels = meta.get("labels") or {}
        return (
            *((event,) if style.show_events else ()),
            *((meta.get("namespace", ""),) if style.with_namespace else ()),
            *(self._cell(row[CELLS], number) for number in self._cells),
            *(labels.get(label, "") for label in style.label_columns),
            *((format_labels(labels),) if style.show_labels else ()),
        )

    def _cell(self, cells: Sequence[object], number: int) -> str:
        text = cell_text(cells[number])
        return f"{self._style.kind}/{text}" if self._style.kind and number == self._name else text


def cell_text(cell: object) -> str:
    """A cell on one line: a text that goes on in further ones ends in dots."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    text = str(cell)
    first = _BREAK.split(text, maxsplit=1)[0]
    return text if first == text else f"{first}..."


def format_labels(labels: Mapping[str, str]) -> str:
    """``app=web,tier=db`` (apimachinery pkg/labels, FormatLabels)."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE
