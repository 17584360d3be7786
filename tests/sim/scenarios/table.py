"""Table of the scenarios of a quiet host, in the order in which they are played, with what each needs and its odds."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from tests.sim.options import Options
from tests.sim.scenarios.claims import ClaimScenario
from tests.sim.scenarios.preemption import preempt
from tests.sim.scenarios.pressure import fill_with_images, press
from tests.sim.scenarios.resizes import resize_one
from tests.sim.scenarios.restarts import restart_one
from tests.sim.scenarios.rotation import rotate
from tests.sim.scenarios.shutdown import drain, go_down
from tests.sim.scenarios.slices import lose_slice
from tests.sim.scenarios.statuses import answer_late, misreport
from tests.sim.world import World

UNSLICED: Final = 0.25
"""Part of the simulations in which the slice of a pod vanishes under it."""
DRAINED: Final = 0.2
"""Part of the simulations in which the quiet node is drained."""
HOST_DOWN: Final = 0.2
"""Part of the simulations in which the quiet host goes down."""
FILLED: Final = 0.2
"""Part of the simulations in which images are too many instead of pods too greedy."""


class _Scenario(NamedTuple):
    """Scenario of a quiet host."""

    play: Callable[[World], Awaitable[None]]
    needs: str = ""
    """Option without which there is nothing to play with."""
    odds: float = 1.0
    """Part of the large simulations in which it is played."""


async def _run_short(world: World) -> None:
    await (fill_with_images(world) if world.rng.random() < FILLED else press(world))


async def _claim(world: World) -> None:
    assert world.claims is not None
    await ClaimScenario(world, world.claims, world.trace, random.Random(world.rng.random())).run()


async def _go_down(world: World) -> None:
    assert world.shutdown is not None
    await go_down(world, world.shutdown)


SCENARIOS: Final[Mapping[str, _Scenario]] = {
    "run short": _Scenario(_run_short, "pressure"),
    "restart": _Scenario(restart_one, "restarts"),
    "claim": _Scenario(_claim, "claims"),
    "rotate": _Scenario(rotate),
    "misreport": _Scenario(misreport),
    "answer late": _Scenario(answer_late),
    "lose a slice": _Scenario(lose_slice, odds=UNSLICED),
    "drain": _Scenario(drain, "shutdown", DRAINED),
    "go down": _Scenario(_go_down, "shutdown", HOST_DOWN),
    "resize": _Scenario(resize_one, "resizes"),
    "preempt": _Scenario(preempt),
}


def is_possible(name: str, options: Options) -> bool:
    needs = SCENARIOS[name].needs
    return not needs or bool(getattr(options, needs))


async def play(world: World) -> None:
    """Play those that the options name, or all by their odds."""
    chosen = world.options.scenarios
    for name, scenario in SCENARIOS.items():
        if not is_possible(name, world.options) or (chosen is not None and name not in chosen):
            continue
        if chosen is None and scenario.odds < 1.0 and world.rng.random() >= scenario.odds:
            continue
        await scenario.play(world)
