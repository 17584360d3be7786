"""Frame of every simulation: its directory, its trace, its outcome, and the steps of its time."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tests.fakes.clock import SimClock
from tests.sim.loop import run_alone
from tests.sim.trace import Trace, Violation

STEP_S: Final = 1.0
"""How often the slow checks look."""
SETTLE_S: Final = 400.0
"""Within which a quiet host comes to what is wanted: the longest back-offs of images and containers, hooks that hang,
grace periods, a resync."""
DOWN_S: Final = 200.0
"""Within which everything is taken down."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one seed came out."""

    seed: int
    digest: str
    broken: str
    """The promise that was broken, or empty."""
    tail: tuple[str, ...]
    noted: int
    """Lines of its whole trace."""


def outcome_of(seed: int, trace: Trace, run: Callable[[Path], Coroutine[object, object, None]]) -> Outcome:
    """Run a simulation from its beginning to its end; ``run`` gets a directory of its own."""
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="rootlet-sim-", dir=memory if memory.is_dir() else None))
    broken = ""
    try:
        run_alone(lambda: run(directory))
    except Violation as violation:
        broken = str(violation)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Outcome(seed=seed, digest=trace.digest(), broken=broken, tail=tuple(trace.lines), noted=trace.noted)


class Frame(ABC):
    """The part of a driver that knows nothing of what it drives."""

    def __init__(self, trace: Trace, clock: SimClock) -> None:
        self.trace = trace
        self.clock = clock

    def listen_for_errors(self) -> None:
        """An error that nobody has caught breaks the promise that there is none."""

        def found(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
            self.trace.broke(f"internal error: {context.get('message')} {context.get('exception')!r}")

        asyncio.get_running_loop().set_exception_handler(found)

    @abstractmethod
    def look(self) -> None:
        """Slow checks, after every step."""

    @abstractmethod
    def unsettled(self, before: Mapping[str, str] | None) -> Mapping[str, str]:
        """Pods that are not as they are wanted, each with the reason; ``before``: those of before, or None."""

    async def come_to_rest(self) -> None:
        """Within the bound everything is as it is wanted: each at some moment of its own, or all at one."""
        wrong = self.unsettled(None)
        end_at = self.now + SETTLE_S
        while wrong and self.now < end_at:
            await self.step(STEP_S)
            wrong = self.unsettled(wrong)
        if wrong:
            words = "; ".join(f"{uid[:8]}: {why}" for uid, why in wrong.items())
            self.trace.broke(f"after {SETTLE_S:g} quiet seconds: {words}")
        self.trace.check()

    async def until(self, is_so: Callable[[], bool], what: str, within_s: float = DOWN_S) -> None:
        end_at = self.now + within_s
        while not is_so():
            if self.now >= end_at:
                self.trace.broke(f"not within {within_s:g} s: {what}")
            await self.step(STEP_S)

    async def step(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.look()
        self.trace.check()

    @property
    def now(self) -> float:
        return self.clock.now().mono
