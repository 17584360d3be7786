"""The curves of `tests.bench.scale` as one SVG, made of text alone.

python -m tests.bench.plot docs/scale.json docs/scale.svg
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

import msgspec

from tests.bench.budgets import ALL, KIB, LOOKED_AT, base, budget, per_pod

Json = Mapping[str, Any]
Point = tuple[float, float]

MIB: Final = 1024 * 1024
PANEL_WIDTH, PANEL_HEIGHT = 430, 270
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 44, 56
COLUMNS: Final = 2
COLOURS: Final = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#475569")
TICKS: Final = 5
STYLE: Final = "text{font:12px sans-serif;fill:#222}.t{font-weight:bold}.a{stroke:#999}.g{stroke:#e5e5e5}"


class Panel(msgspec.Struct, frozen=True):
    title: str
    lines: Mapping[str, Sequence[Point]]
    """By name: (pods, value)."""


def panels(runs: Sequence[Json]) -> list[Panel]:
    """Panels that are worth a look, out of the figures of the runs."""

    def line(value: Callable[[Json, Json], float], phase: str) -> list[Point]:
        return [(run["pods"], value(run, run["phases"][phase])) for run in runs if phase in run["phases"]]

    def cpu_per(pods: str) -> Callable[[Json, Json], float]:
        return lambda run, phase: 1000 * sum(phase["cpuSeconds"].values()) / run[pods]

    def memory(name: str) -> Callable[[Json, Json], float]:
        return lambda run, phase: phase["pssBytes"][name] / MIB

    def idle(name: str) -> Callable[[Json, Json], float]:
        return lambda run, phase: 100 * phase["cpuSeconds"][name] / phase["seconds"]

    aim = [(run["pods"], budget(LOOKED_AT, ALL, run["pods"])) for run in runs]
    aim_name = f"{base(LOOKED_AT, ALL):g} MiB + {per_pod(ALL) * KIB:g} KiB a pod"
    total = line(lambda run, phase: sum(phase["pssBytes"].values()) / MIB, "idle")
    names = {"master": "master", "node": "node worker", "api": "API server", "pods-0": "a pod worker"}
    calls = {"start": "pods", "edit": "changed", "delete": "changed", "resync": "pods", "restart": "pods"}
    return [
        Panel("Memory, MiB (PSS of all processes)", {"measured": total, aim_name: aim}),
        Panel("Memory, MiB (PSS), by process", {words: line(memory(name), "idle") for name, words in names.items()}),
        Panel("CPU of the agent, ms for each pod concerned", {p: line(cpu_per(pods), p) for p, pods in calls.items()}),
        Panel(
            "Calls of Podman for each pod concerned",
            {
                phase: line(lambda run, phase, pods=pods: sum(phase["calls"].values()) / run[pods], phase)  # type: ignore[misc]
                for phase, pods in calls.items()
            },
        ),
        Panel("CPU when nothing happens, % of one", {words: line(idle(name), "idle") for name, words in names.items()}),
        Panel("Duration, s", {p: line(lambda run, phase: phase["seconds"], p) for p in ("start", "resync", "restart")}),
    ]


def draw(found: Sequence[Panel]) -> str:
    rows = math.ceil(len(found) / COLUMNS)
    width, height = COLUMNS * PANEL_WIDTH, rows * PANEL_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    ]
    parts += [f"<style>{STYLE}</style>", f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for index, panel in enumerate(found):
        x, y = index % COLUMNS * PANEL_WIDTH, index // COLUMNS * PANEL_HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel) -> list[str]:
    points = [point for line in panel.lines.values() for point in line]
    x_end, y_end = (_round_up(max((point[axis] for point in points), default=1.0)) for axis in (0, 1))
    width, height = PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM

    def place(point: Point) -> Point:
        return LEFT + width * point[0] / x_end, TOP + height * (1 - point[1] / y_end)

    parts = [f'<text class="t" x="{LEFT}" y="18">{escape(panel.title)}</text>']
    for tick in range(TICKS + 1):
        (x, y), (left, bottom) = place((x_end * tick / TICKS, y_end * tick / TICKS)), place((0, 0))
        parts.append(
            f'<line class="{"g" if tick else "a"}" x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}"/>'
        )
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{y_end * tick / TICKS:g}</text>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{x_end * tick / TICKS:g}</text>')
    at = LEFT
    for (name, line), colour in zip(panel.lines.items(), COLOURS, strict=False):
        placed = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, line))
        parts.append(f'<polyline points="{placed}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in map(place, line)]
        parts.append(f'<rect x="{at}" y="{PANEL_HEIGHT - 26}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{at + 14}" y="{PANEL_HEIGHT - 17}">{escape(name)}</text>')
        at += 26 + 7 * len(name)
    return parts


def _round_up(value: float) -> float:
    """To a number that is easy to divide."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    target.write_text(draw(panels(json.loads(source.read_text())["runs"])))


if __name__ == "__main__":
    main()
