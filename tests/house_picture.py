"""Draws docs/architecture.svg: the agent's processes, the messages on their links, and the phases of a pod.

    python -m tests.house_picture

The children, the messages and the phases are read from the code's own tables; a unit test holds the committed picture
against what is drawn now.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from ipc.link.messages.catalogue import DIALING, LINKS, ZYGOTE
from ipc.link.messages.pod_worker import WorkType
from ipc.link.wire.boot import Role
from supervisor.processes.child_specs import child_specs
from supervisor.processes.podman_service import PodmanService
from supervisor.processes.worker_pool import ChildSpec
from tests.drawing import LINE, Box, arrow_down, framed, head, text_at

PICTURE: Final = Path(__file__).parents[1] / "docs" / "architecture.svg"
DOES: Final[Mapping[Role, Sequence[str]]] = {
    Role.EXEC: ("podman system service,", "our own or the user's"),
    Role.NODE_WORKER: ("observes: relist, events, exits;", "pulls; speaks to a cluster"),
    Role.API_SERVER: ("HTTP on the admin socket,", "exec, attach, port-forward"),
    Role.DIALER: ("makes sockets in", "pods' networks"),
    Role.POD_WORKER: ("SyncPod, hooks and probes", "of a shard of the pods"),
}
PHASES: Final[Mapping[WorkType, str]] = {
    WorkType.SYNC: "containers are made what the manifest wants",
    WorkType.TERMINATING: "ordered stop within the grace period",
    WorkType.TERMINATED: "sandbox, volumes and logs are removed",
}
MOVES: Final = ("removed, rejected, evicted, or all containers have ended", "nothing runs any more")
"""From each phase to the next one."""

WIDTH: Final = 1380
MARGIN: Final = 20


def children() -> list[ChildSpec]:
    """One of each kind: with a Podman service of our own, one pod worker and the one of quarantine."""
    return child_specs(PodmanService(Path(), argv=("podman",)), 1, quarantine=True)


def message_names(union: Any) -> list[str]:
    """In the order of the alphabet: that of an equal union, made elsewhere, may be another."""
    return sorted(kind.__name__ for kind in (get_args(union) or (union,)))


def draw() -> str:
    return "".join(f"{line}\n" for line in _document())


def _document() -> Iterator[str]:
    specs = children()
    width = (WIDTH - MARGIN * (len(specs) + 1)) / len(specs)
    master = Box(MARGIN, 20, WIDTH - 2 * MARGIN, 78)
    zygote = Box(MARGIN, 150, WIDTH - 2 * MARGIN, 46)
    boxes = [Box(MARGIN + at * (width + MARGIN), 250, width, 76) for at in range(len(specs))]
    rows = max(len(_messages(spec)) for spec in specs)
    board = Box(MARGIN, 345 + rows * LINE, WIDTH - 2 * MARGIN, 46)
    phases = board.below + 50
    height = phases + 100
    yield from head(WIDTH, height)
    yield from framed(
        master,
        "master",
        "sync loop, desired pods, pod cache, phases, status; never calls Podman, never forks",
        f"to the zygote: {', '.join(message_names(ZYGOTE.commands))}    "
        f"from it: {', '.join(message_names(ZYGOTE.reports))}",
        "a private link (socketpair) to each child that speaks; its messages stand below it",
    )
    yield from framed(zygote, "zygote", "forked before any loop or thread; the only caller of fork(2); reaps by pidfd")
    yield arrow_down(master.middle, master.below, zygote.y)
    for spec, box in zip(specs, boxes, strict=True):
        yield from _child(spec, box)
        yield arrow_down(box.middle, zygote.below, box.y)
        for at, text in enumerate(_messages(spec)):
            yield text_at(box.x + 4, box.below + 22 + at * LINE, text, "message")
    yield from framed(
        board,
        "board (shared memory)",
        "one row a worker: heartbeat, step, breaker; one row a pod: its newest observation; one writer a row, "
        "readers wait for nobody",
        kind="board",
    )
    yield from _phases(phases)
    yield "</svg>"


def _messages(spec: ChildSpec) -> list[str]:
    if spec.role not in LINKS:
        return ["no link: the libpod API", "on a Unix socket"]
    asked = [f"← {name}" for name in message_names(DIALING.commands)]
    answered = [f"→ {name}" for name in message_names(DIALING.reports)]
    return [
        *(f"↓ {name}" for name in message_names(LINKS[spec.role].commands)),
        *(f"↑ {name}" for name in message_names(LINKS[spec.role].reports)),
        *(["asked by workers:", *asked, *answered] if spec.role is Role.DIALER else []),
    ]


def _child(spec: ChildSpec, box: Box) -> Iterator[str]:
    notes = ["on demand"] * spec.on_demand + ["while a pod kills its worker"] * spec.expendable
    lazy = spec.on_demand or spec.expendable
    yield from framed(box, spec.name, *DOES[spec.role], *notes, kind="lazy" if lazy else "")


def _phases(top: float) -> Iterator[str]:
    width = 250.0
    gap = (WIDTH - 2 * MARGIN - width * len(PHASES)) / (len(PHASES) - 1)
    yield text_at(
        MARGIN, top - 12, "the phases of a pod (its work in the master), from its manifest to nothing", "name"
    )
    for at, (phase, does) in enumerate(PHASES.items()):
        box = Box(MARGIN + at * (width + gap), top, width, 50)
        yield from framed(box, _word(phase), does)
        if at < len(MOVES):
            y = top + 25
            yield f'<path d="M{box.x + width:g},{y:g} L{box.x + width + gap:g},{y:g}"/>'
            yield text_at(MARGIN + at * (width + gap), top + 68, f"→ {MOVES[at]}", "small")


def _word(value: enum.StrEnum) -> str:
    return value.name.lower()


if __name__ == "__main__":
    PICTURE.write_text(draw())
