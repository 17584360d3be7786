"""The life of a pod: time goes down, and a column is a process. The phases are those of the code."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ipc.link.messages.pod_worker import WorkType
from tests.drawing import Box, framed, head, path, text_at

ACTORS: Final = ("master", "pod worker", "Podman", "node worker")
STATUS: Final[Mapping[WorkType, str]] = {
    WorkType.SYNC: "Pending, Running",
    WorkType.TERMINATING: "Terminating",
    WorkType.TERMINATED: "Succeeded or Failed, or gone",
}
"""Words of `rootlet get pods` meanwhile."""


class Step(NamedTuple):
    phase: WorkType
    actor: str
    name: str
    does: Sequence[str]


STEPS: Final = (
    Step(WorkType.SYNC, "master", "a manifest appears", ("checks it, admits the pod,", "asks for an observation")),
    Step(WorkType.SYNC, "node worker", "observes", ("what there is of the pod:", "a row of the board")),
    Step(WorkType.SYNC, "master", "decides the phase", ("status first; then SyncPod", "to the worker of the pod")),
    Step(
        WorkType.SYNC,
        "pod worker",
        "computes, acts",
        ("pulls, volumes, sandbox, init", "containers, containers, hooks"),
    ),
    Step(WorkType.SYNC, "Podman", "containers run", ("monitors (conmon) hold them,", "whoever else dies")),
    Step(
        WorkType.SYNC,
        "node worker",
        "observes again",
        ("events and ends of containers;", "what was touched is seen anew"),
    ),
    Step(
        WorkType.TERMINATING,
        "master",
        "the pod has to end",
        ("removed, evicted, past its", "deadline, or all have ended"),
    ),
    Step(
        WorkType.TERMINATING,
        "pod worker",
        "stops in order",
        ("preStop, SIGTERM, and SIGKILL", "after grace; sidecars last"),
    ),
    Step(WorkType.TERMINATING, "node worker", "observes", ("nothing of it runs any more",)),
    Step(WorkType.TERMINATED, "master", "reports the end", ("phase Succeeded or Failed,", "with each exit code")),
    Step(
        WorkType.TERMINATED,
        "pod worker",
        "clears up",
        ("volumes; of a removed pod its", "containers, sandbox, logs too"),
    ),
    Step(WorkType.TERMINATED, "node worker", "observes nothing", ("and the master forgets the pod",)),
)
AGAIN: Final = (5, 2, "for every change, and once in syncFrequency")
"""From this step back to that one, as long as the pod lives."""

_LEFT: Final = 150
_COLUMN: Final = 240
_WIDTH: Final = 205
_ROW: Final = 74
_HEIGHT: Final = 56
_TOP: Final = 50
_BAND: Final[Mapping[WorkType, str]] = {
    WorkType.SYNC: "#dafbe1",
    WorkType.TERMINATING: "#fff8c5",
    WorkType.TERMINATED: "#ffebe9",
}


def draw() -> Iterator[str]:
    """Lines of SVG."""
    width, height = _LEFT + _COLUMN * len(ACTORS) + 10, _TOP + _ROW * len(STEPS) + 10
    yield from head(width, height, "".join(f".{p.name}{{fill:{colour};stroke:none}}" for p, colour in _BAND.items()))
    for phase in WorkType:
        yield from _band(phase, width)
    for at, actor in enumerate(ACTORS):
        yield text_at(_LEFT + at * _COLUMN + 10, _TOP - 18, actor, "name")
    boxes = [_box(at, step) for at, step in enumerate(STEPS)]
    for step, box in zip(STEPS, boxes, strict=True):
        yield from framed(box, step.name, *step.does)
    for box, after in itertools.pairwise(boxes):
        yield _arrow(box, after)
    yield from _again(boxes[AGAIN[0]], boxes[AGAIN[1]])
    yield "</svg>"


def _box(at: int, step: Step) -> Box:
    return Box(_LEFT + ACTORS.index(step.actor) * _COLUMN, _TOP + at * _ROW, _WIDTH, _HEIGHT)


def _band(phase: WorkType, width: float) -> Iterator[str]:
    rows = [at for at, step in enumerate(STEPS) if step.phase is phase]
    top, height = _TOP + rows[0] * _ROW - 8, len(rows) * _ROW - 2
    yield f'<rect class="{phase.name}" x="10" y="{top:g}" width="{width - 20:g}" height="{height:g}"/>'
    yield text_at(22, top + 26, phase.name.lower(), "name")
    for at, word in enumerate(STATUS[phase].split(", ")):
        yield text_at(22, top + 46 + at * 15, word, "small")


def _arrow(box: Box, after: Box) -> str:
    """From the box's side to the next one's top."""
    if box.x == after.x:
        return path((box.middle, box.below), (after.middle, after.y))
    side = box.x + box.width if after.x > box.x else box.x
    y = box.y + box.height / 2
    return path((side, y), (after.middle, y), (after.middle, after.y))


def _again(box: Box, before: Box) -> Iterator[str]:
    """Back to an earlier step, around the left of the boxes between."""
    y, target = box.y + 14, before.below
    yield path((box.x, y), (before.x + 20, y), (before.x + 20, target))
    yield text_at(before.x + 28, y - 5, AGAIN[2], "small")
