"""A run as one HTML file, which needs nothing else: facts, two plots, processes, problems. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from ipc.host.text.human import mebibytes
from supervisor.load_test.report import Report, facts, verdict

WIDTH: Final = 720
HEIGHT: Final = 220
MARGIN: Final = 44
BARS: Final = 24
_STYLE: Final = (
    "body{font:15px/1.5 sans-serif;max-width:50em;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;text-align:left;border-bottom:1px solid #ddd}"
    "svg{width:100%;height:auto}.line{fill:none;stroke:#1666a8;stroke-width:2}.bar{fill:#1666a8}"
    ".axis{stroke:#888}text{font-size:12px;fill:#555}.failed{color:#a11}"
)

Point = tuple[float, float]


def as_html(report: Report) -> str:
    """The whole file."""
    kind = "passed" if report.passed else "failed"
    parts = (
        f"<h1>Load test {escape(report.run)}</h1>",
        f'<p class="{kind}"><b>{escape(verdict(report))}</b></p>',
        _table(("", ""), facts(report)),
        "<h2>Pods that are Ready, by seconds since the first request</h2>",
        _curve(report.ready_at_s),
        "<h2>Pods by seconds from their request to Ready</h2>",
        _histogram(report.times_to_ready_s),
        "<h2>Processes</h2>",
        _table(
            ("process", "count", "PSS", "CPU"),
            ((u.name, str(u.count), mebibytes(u.pss_bytes), f"{u.cpu_seconds:.2f} s") for u in report.processes),
        ),
        *(f"<h2>Problems</h2><ul>{_items(report.problems)}</ul>" for _ in report.problems[:1]),
    )
    head = f'<meta charset="utf-8"><title>Load test {escape(report.run)}</title><style>{_STYLE}</style>'
    return f"<!doctype html>\n<html><head>{head}</head><body>\n" + "\n".join(parts) + "\n</body></html>\n"


def _items(texts: Iterable[str]) -> str:
    return "".join(f"<li>{escape(text)}</li>" for text in texts)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    titles = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    return f"<table><tr>{titles}</tr>{lines}</table>" if any(head) else f"<table>{lines}</table>"


def _curve(ready_at_s: Sequence[float]) -> str:
    if not ready_at_s:
        return "<p>none</p>"
    most_s, count = max(ready_at_s[-1], 1e-9), len(ready_at_s)
    points = [(0.0, 0.0), *((at / most_s, (n + 1) / count) for n, at in enumerate(ready_at_s))]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(_place, points))
    return _plot(f'<polyline class="line" points="{line}"/>', most_s, count)


def _histogram(durations_s: Sequence[float]) -> str:
    if not durations_s:
        return "<p>none</p>"
    most_s = max(*durations_s, 1e-9)
    counts = [0] * BARS
    for duration in durations_s:
        counts[min(BARS - 1, int(duration / most_s * BARS))] += 1
    tallest = max(counts)
    bars = []
    for index, count in enumerate(counts):
        left, top = _place((index / BARS, count / tallest))
        right, bottom = _place(((index + 1) / BARS, 0.0))
        size = f'width="{right - left - 1:.1f}" height="{bottom - top:.1f}"'
        bars.append(f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" {size}/>')
    return _plot("".join(bars), most_s, tallest)


def _place(share: Point) -> Point:
    """Pixels of a point that is given in shares of the axes."""
    x, y = share
    return MARGIN + x * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - y * (HEIGHT - 2 * MARGIN)


def _plot(drawn: str, most_x: float, most_y: int) -> str:
    left, bottom = _place((0.0, 0.0))
    right, top = _place((1.0, 1.0))
    axes = (
        f'<line class="axis" x1="{left}" y1="{bottom}" x2="{right}" y2="{bottom}"/>'
        f'<line class="axis" x1="{left}" y1="{bottom}" x2="{left}" y2="{top}"/>'
        f'<text x="{left}" y="{bottom + 18}">0</text>'
        f'<text x="{right}" y="{bottom + 18}" text-anchor="end">{most_x:.2f} s</text>'
        f'<text x="{left - 6}" y="{top + 4}" text-anchor="end">{most_y}</text>'
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{axes}{drawn}</svg>'
