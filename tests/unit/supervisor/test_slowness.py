"""A loop that was held up says so."""

from __future__ import annotations

import asyncio

import pytest

from supervisor.slowness import HOUSEKEEPING_WARNING_S, warn_if_slow
from tests.fakes.clock import SimClock, simulate


@pytest.mark.parametrize(("took_s", "lines"), [(1.0, []), (1.5, ["housekeeping took 1.5 s, longer than 1 s"])])
def test_only_what_takes_too_long_is_said(took_s: float, lines: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async def keep_house() -> None:
        with warn_if_slow(SimClock(), "housekeeping", HOUSEKEEPING_WARNING_S):
            await asyncio.sleep(took_s)

    simulate(keep_house)
    assert caplog.messages == lines
