"""Rules of the watch: what a call may do that nobody waits for any more, and what it may not hide."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.fakes.clock import SimClock
from tests.fakes.ownership import ownership
from tests.sim.loop import run_alone
from tests.sim.runtime import INSTANCE, SimPodman
from tests.sim.trace import Trace
from tests.sim.watch import Watch
from tests.support.pods import UID, pod
from workers.specgen.spec import pod_spec


class World:
    """A Podman that is watched. Time passes where a test says so."""

    def __init__(self) -> None:
        clock, self.trace = SimClock(), Trace()
        self.watch = Watch(self.trace, clock, lambda uid: None)
        self.podman = SimPodman(clock, random.Random(1), self.watch, images=[], registry=[])
        self.watch.podman = self.podman
        self._clock = clock

    def now(self) -> float:
        """Monotonic seconds."""
        return self._clock.now().mono

    def make_late(self, given_up_at: float | None) -> None:
        """The sandbox comes now, and whoever asked for it has given up then; None for somebody else."""
        spec = pod_spec(pod("a"), ownership(INSTANCE), 0, Path("/nonexistent"))
        if given_up_at is None:
            self.podman.create_pod(spec)
        else:
            self.podman.happen_late(lambda: self.podman.create_pod(spec), given_up_at)


async def given_up_by_this_agent(world: World) -> float:
    world.watch.agent_begins()
    await asyncio.sleep(1.0)
    return world.now()


async def given_up_by_an_agent_before(world: World) -> float:
    given_up_at = world.now()
    await asyncio.sleep(1.0)
    world.watch.agent_begins()
    return given_up_at


async def made_by_somebody_else(world: World) -> None:
    world.watch.agent_begins()


@pytest.mark.parametrize(
    ("given_up", "looked_after_s", "listed_after_s", "is_broken"),
    [
        (given_up_by_this_agent, -1.0, -2.0, False),
        (given_up_by_this_agent, 1.0, -1.0, True),
        (given_up_by_an_agent_before, 1.0, -1.0, False),
        (given_up_by_an_agent_before, 2.0, 1.0, True),
        (made_by_somebody_else, 1.0, -1.0, False),
        (made_by_somebody_else, 2.0, 1.0, True),
    ],
)
def test_a_late_sandbox_is_forgiven_that_nobody_could_see(
    given_up: Callable[[World], Awaitable[float | None]], looked_after_s: float, listed_after_s: float, is_broken: bool
) -> None:
    """A list of everything shows it, and so does every look of the agent whose call it was."""

    async def scenario() -> None:
        world = World()
        given_up_at = await given_up(world)
        await asyncio.sleep(2.0)
        world.make_late(given_up_at)
        made_at = world.now()
        world.watch.forgotten(UID, made_at + looked_after_s, made_at + listed_after_s)
        assert bool(world.trace.broken) is is_broken

    run_alone(scenario)


def test_a_pod_of_which_nothing_was_ever_seen_is_not_forgotten_while_it_is_there() -> None:
    async def scenario() -> None:
        world = World()
        world.podman.create_pod(pod_spec(pod("a"), ownership(INSTANCE), 0, Path("/nonexistent")))
        world.watch.began_anew(UID)
        world.watch._made_late_at.clear()
        world.watch._left_late_at.clear()
        world.watch.forgotten(UID, 0.0, 0.0)
        assert world.trace.broken

    run_alone(scenario)
