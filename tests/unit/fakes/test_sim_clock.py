from __future__ import annotations

import asyncio

from tests.fakes.clock import START_MONO, START_WALL, SimClock, simulate


def test_time_jumps_to_the_next_timer_and_nowhere_else() -> None:
    async def main() -> list[tuple[str, float]]:
        clock = SimClock()
        seen: list[tuple[str, float]] = []

        async def wait(name: str, seconds: float) -> None:
            await asyncio.sleep(seconds)
            seen.append((name, clock.now().mono - START_MONO))

        await asyncio.gather(wait("year", 31_536_000), wait("second", 1), wait("day", 86_400))
        return seen

    assert simulate(main) == [("second", 1.0), ("day", 86_400.0), ("year", 31_536_000.0)]


def test_both_clocks_move_together_until_the_wall_clock_is_set() -> None:
    async def main() -> None:
        clock = SimClock()
        await asyncio.sleep(5)
        assert clock.now().wall == START_WALL + 5
        clock.wall_offset_s -= 3600
        assert clock.now().wall == START_WALL - 3595
        assert clock.now().mono == START_MONO + 5

    simulate(main)


def test_timeouts_are_simulated() -> None:
    async def main() -> float:
        try:
            async with asyncio.timeout(1000):
                await asyncio.Event().wait()
        except TimeoutError:
            return SimClock().now().mono - START_MONO
        return 0.0

    assert simulate(main) == 1000.0
