"""Columns of text: kubectl's tables, and the elastic tabstops of its descriptions (Go's text/tabwriter)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ipc.host.text.safe_text import safe_text

MIN_WIDTH: Final = 6
"""Narrowest column of a table, its padding included, in characters (cli-runtime printers, GetNewTabWriter)."""
PADDING: Final = 3
DESCRIBE_PADDING: Final = 2


def printable(text: str) -> str:
    """Put a text on one line, in which nothing steers somebody's terminal (cli-runtime printers, EscapeTerminal)."""
    return safe_text(text).replace("\n", " ")


class TablePrinter:
    """Formats rows below each other. Widths only grow, so that rows that come later line up with what was printed."""

    def __init__(self, header: Sequence[str], *, show_header: bool = True) -> None:
        self._header = header
        self._header_due = show_header
        self._widths = [MIN_WIDTH] * len(header)

    def format(self, rows: Iterable[Sequence[str]]) -> str:
        """Rows as lines, under the header the first time."""
        table = [*((self._header,) if self._header_due else ()), *([printable(cell) for cell in row] for row in rows)]
        self._header_due = False
        for row in table:
            self._widths = [max(width, len(cell) + PADDING) for width, cell in zip(self._widths, row, strict=True)]
        return "".join(self._line(row) for row in table)

    def _line(self, row: Sequence[str]) -> str:
        *cells, last = row
        return "".join(cell.ljust(width) for cell, width in zip(cells, self._widths, strict=False)) + f"{last}\n"


def align_tabs(text: str, padding: int = DESCRIBE_PADDING) -> str:
    """Replace tabs by spaces: cells that stand below each other in consecutive lines get one width."""
    lines = [line.split("\t") for line in text.split("\n")]
    widths: list[list[int]] = [[] for _ in lines]
    _measure(lines, widths, 0, range(len(lines)), padding)
    return "\n".join(
        "".join(cell.ljust(width) for cell, width in zip(line, line_widths, strict=False)) + line[-1]
        for line, line_widths in zip(lines, widths, strict=True)
    )


def _measure(lines: list[list[str]], widths: list[list[int]], column: int, span: range, padding: int) -> None:
    """Give every run of lines that has a cell in this column one width for it, then go on within that run.

    A line's last cell belongs to no column: only a tab ends a cell.
    """
    start = span.start
    while start < span.stop:
        end = start
        while end < span.stop and column < len(lines[end]) - 1:
            end += 1
        if end == start:
            start += 1
            continue
        width = max(len(lines[i][column]) for i in range(start, end)) + padding
        for i in range(start, end):
            widths[i].append(width)
        _measure(lines, widths, column + 1, range(start, end), padding)
        start = end
