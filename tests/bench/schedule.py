"""The steps of one run of `make bench`, in their order. Pure.

A population of 300 pods takes minutes to come and to go: so it is started once, and is there in all rounds of the plan
beside it, at whose ends the agent is killed. What is measured once has one figure, and no spread. Raw calls start and
remove such a population before all that and after it: the machine's speed need not be what it was.

Who comes after a removal pays for it on some file systems. So every second round has the two sides in the other order:
raw calls do not always come first.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from tests.bench.table import BESIDE, EMPTY, MANY


class Phase(enum.StrEnum):
    """Something that is done and measured at a time."""

    GROW = "grow"
    """Raw calls start and remove the plan's pods, unmeasured, on a storage that never had as many. Who comes first
    finds a database without free pages there (`supervisor.doctor.podman_database`), for which everybody later pays."""
    RAW = "raw"
    """Raw calls start the plan's pods and remove them."""
    PLAIN = "plain"
    """The same on a service without our settings."""
    DEFAULT_STORE = "default-store"
    """Raw calls do so on Podman's default store, where the agent has the transient one."""
    FILTERED = "filtered"
    """Raw calls do so with the seccomp filters of Rootlet's pods."""
    START = "start"
    GET = "get"
    IDLE = "idle"
    RESTART = "restart"
    RESPAWN = "respawn"
    STOP = "stop"


class Step(msgspec.Struct, frozen=True):
    """One phase of one plan."""

    plan: str
    phase: Phase
    round: int = 1


ALONE: Final = (
    Phase.RAW,
    Phase.PLAIN,
    Phase.DEFAULT_STORE,
    Phase.FILTERED,
    Phase.START,
    Phase.GET,
    Phase.IDLE,
    Phase.RESTART,
    Phase.STOP,
)
"""A round on an empty host. Podman in one store may unmount what runs in the other: only here it is asked for both."""
BESIDE_OTHERS: Final = (Phase.RAW, Phase.PLAIN, Phase.FILTERED, Phase.START, Phase.RESTART, Phase.STOP)
"""A round beside the population."""


BY_RAW_CALLS: Final = frozenset({Phase.RAW, Phase.PLAIN, Phase.DEFAULT_STORE, Phase.FILTERED})
"""Phases in which Rootlet does nothing."""
MAKING: Final = frozenset({Phase.START, Phase.STOP})
"""Phases that make and remove the pods that the others need."""


def schedules(
    plans: Collection[str], rounds: int, phases: Collection[Phase] = tuple(Phase)
) -> Iterator[Sequence[Step]]:
    """For each agent that is needed, what is done with it. ``plans``: names of those whose figures are wanted."""
    for steps in _agents(plans, rounds):
        yield [step for step in steps if step.phase in MAKING.union(phases)]


def _agents(plans: Collection[str], rounds: int) -> Iterator[Iterable[Step]]:
    if EMPTY.name in plans:
        yield (Step(EMPTY.name, phase, number) for number in _numbers(rounds) for phase in _turned(ALONE, number))
    if {BESIDE.name, MANY.name} & set(plans):
        yield _populated(BESIDE.name in plans, MANY.name in plans, rounds)


def _populated(beside: bool, many: bool, rounds: int) -> Iterator[Step]:
    if many:
        yield Step(MANY.name, Phase.GROW)
        yield Step(MANY.name, Phase.RAW)
    yield Step(MANY.name, Phase.START)
    if many:
        yield Step(MANY.name, Phase.IDLE)
    for number in _numbers(rounds):
        if beside:
            yield from (Step(BESIDE.name, phase, number) for phase in _turned(BESIDE_OTHERS, number))
        if many:
            yield Step(MANY.name, Phase.RESPAWN, number)
    yield Step(MANY.name, Phase.STOP)
    if many:
        yield Step(MANY.name, Phase.RAW, 2)


def _turned(phases: Sequence[Phase], number: int) -> Sequence[Phase]:
    """The phases of that round."""
    raw, ours = ([phase for phase in phases if (phase in BY_RAW_CALLS) is is_raw] for is_raw in (True, False))
    return [*raw, *ours] if number % 2 else [*ours, *reversed(raw)]


def _numbers(rounds: int) -> range:
    return range(1, rounds + 1)
