"""Boxes, texts and arrows of the pictures in docs/, as lines of SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

LINE: Final = 15
"""From one line of text to the next one, in pixels as all lengths here."""
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#1b1f24}.name{font-weight:bold}"
    ".small{font-size:11px}.message{font:10.5px monospace}"
    "rect{fill:#f6f8fa;stroke:#57606a;rx:6}.board{fill:#fff8c5}.lazy{stroke-dasharray:5 3}"
    "path{fill:none;stroke:#57606a;marker-end:url(#head)}"
)


class Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def below(self) -> float:
        return self.y + self.height


def head(width: float, height: float, style: str = "") -> Iterator[str]:
    """The beginning of a picture, with further style."""
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}">'
    yield f"<style>{_STYLE}{style}</style>"
    yield (
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
        '<path d="M0,0 L7,3 L0,6" style="marker-end:none"/></marker></defs>'
    )


def framed(box: Box, name: str, *lines: str, kind: str = "") -> Iterator[str]:
    """A box with its name and further lines."""
    yield (
        f'<rect class="{kind}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}"/>'
        f"{text_at(box.x + 10, box.y + 18, name, 'name')}"
    )
    for at, line in enumerate(lines, 1):
        yield text_at(box.x + 10, box.y + 18 + at * LINE, line, "small")


def text_at(x: float, y: float, text: str, kind: str) -> str:
    """A line of text that begins there."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def arrow_down(x: float, top: float, bottom: float) -> str:
    """A vertical arrow."""
    return path((x, top), (x, bottom))


def path(*points: tuple[float, float], kind: str = "") -> str:
    """An arrow along these points."""
    line = " L".join(f"{x:g},{y:g}" for x, y in points)
    return f'<path class="{kind}" d="M{line}"/>' if kind else f'<path d="M{line}"/>'
