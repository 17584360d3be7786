"""A claim on a quiet host, over deaths of the agent: bound, shared, held by one, deleted while used, reclaimed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Final

from supervisor.state.volume_bindings import VolumePhase
from tests.sim.claims import ALONE, BOUND_S, CONTENT, OF_MANY, SHARED, VOLUME_OF, SimClaims, claiming_pods
from tests.sim.trace import Trace
from tests.sim.world import World

KILLED: Final = 0.3
"""Part of the stages in which the agent is killed."""
LASTS_S: Final = 6.0
HELD_S: Final = 20.0
"""How long it is seen that somebody waits."""


class ClaimScenario:
    """One run."""

    def __init__(self, world: World, claims: SimClaims, trace: Trace, rng: random.Random) -> None:
        self._world = world
        self._claims = claims
        self._trace = trace
        self._rng = rng
        self._sharing = claiming_pods(SHARED, 1, 2)
        self._alone = claiming_pods(ALONE, 1, 2)

    async def run(self) -> None:
        """Raises Violation."""
        self._trace.note("claims are bound, used and deleted")
        await self._state(SHARED, ALONE)
        await self._world.replace((), {**self._sharing, **self._alone})
        await self._disturb()
        await self._until(lambda: self._claims.users(SHARED) >= self._sharing.keys(), "both pods have the shared claim")
        await self._until(lambda: len(self._claims.users(ALONE)) == 1, "one pod has the claim that is for one")
        for claim in (SHARED, ALONE):
            (self._claims.path(claim) / CONTENT).touch()
        await self._delete_while_used()
        await self._let_go()
        await self._claim_again()

    async def _delete_while_used(self) -> None:
        """Claims without documents are their pods' until these have ended; later pods wait."""
        shared, alone = (frozenset(self._claims.users(claim)) for claim in (SHARED, ALONE))
        await self._state()
        await self._disturb()
        end_s = 0.0
        while end_s < HELD_S:
            await self._world.step(1.0)
            end_s += 1.0
            if not alone & self._claims.users(ALONE) and len(self._claims.users(ALONE)) > 0:
                self._trace.broke("another pod has the claim that is being deleted")
            self._expect_content(SHARED, ALONE)
        await self._until(lambda: self._claims.users(SHARED) >= shared, "those that used the claim go on")
        if any(phase is not VolumePhase.BOUND for phase in self._phases().values()):
            self._trace.broke(f"volumes are {self._phases()} while pods use them")

    async def _let_go(self) -> None:
        """One volume is kept, with what is in it; the other one is emptied and there for the next claim."""
        await self._world.replace((*self._sharing, *self._alone), {})
        await self._disturb()
        await self._until(lambda: not self._claims.path(ALONE).exists(), "the volume of the policy Delete is emptied")
        kept, emptied = (VOLUME_OF[claim] for claim in (SHARED, ALONE))
        await self._until(lambda: self._phases() == {kept: VolumePhase.RELEASED}, f"only {kept} is released")
        self._expect_content(SHARED)
        self._trace.note(f"{emptied} is there again")

    async def _claim_again(self) -> None:
        """A released volume is nobody's until its own document was gone."""
        await self._state(SHARED, ALONE)
        await self._world.replace((), {**self._sharing, **self._alone})
        await self._until(lambda: len(self._claims.users(ALONE)) == 1, "the emptied volume is claimed again")
        await self._disturb()
        if self._claims.users(SHARED):
            self._trace.broke("a released volume was given to a claim")
        await self._state(SHARED, ALONE, volumes=(ALONE,))
        await self._state(SHARED, ALONE)
        await self._until(
            lambda: self._claims.users(SHARED) == self._sharing.keys(), "the kept volume is claimed again"
        )
        self._expect_content(SHARED)
        (holder,) = self._claims.users(ALONE)
        await self._world.replace((holder,), {})
        others = self._alone.keys() - {holder}
        await self._until(lambda: self._claims.users(ALONE) == others, "the one that waited has the claim")
        await self._world.replace((*self._sharing, *others), {})

    def _expect_content(self, *claims: str) -> None:
        for claim in claims:
            if not (self._claims.path(claim) / CONTENT).exists():
                self._trace.broke(f"the content of {VOLUME_OF[claim]} is gone")

    def _phases(self) -> dict[str, VolumePhase]:
        every = {held.volume: held.phase for held in self._world.agent.bindings}
        return {volume: phase for volume, phase in every.items() if volume != VOLUME_OF[OF_MANY]}

    async def _state(self, *claims: str, volumes: Iterable[str] = VOLUME_OF) -> None:
        await self._until(lambda: self._world.agent.sources_ready, "the sources were read")
        self._claims.state(*claims, OF_MANY, volumes={*volumes, OF_MANY})
        self._world.read_sources()
        await self._world.step(1.0)

    async def _disturb(self) -> None:
        """Perhaps the agent is killed at some moment of what was just begun."""
        if self._rng.random() < KILLED:
            await self._world.step(self._rng.uniform(0.0, LASTS_S))
            self._world.kill_agent_alone()
            await self._until(lambda: self._world.agent.sources_ready, "the next agent has read its sources")

    async def _until(self, is_so: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            self._claims.check_alone()
            self._world.read_sources()
            return is_so()

        await self._world.until(holds, what, BOUND_S * 3)
