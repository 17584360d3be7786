"""Work that is done again and again. What falls due at nearly the same moment is done at once, because waking the
process for it costs more than most of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Never

from ipc.link.eventloop.loop_clock import loop_time

EARLY: Final = 0.05
"""By so much of its period work may be done early, beside other work."""


class Periodic(NamedTuple):
    """One kind of work."""

    period_s: Callable[[], float]
    """Asked after each time, in seconds."""
    act: Callable[[], None]


async def act_periodically(*works: Periodic) -> Never:
    """Do each a period from now and ever after. What one raises ends all."""
    due = [loop_time() + work.period_s() for work in works]
    while True:
        await asyncio.sleep(min(due) - loop_time())
        for number, work in enumerate(works):
            if due[number] - loop_time() <= EARLY * work.period_s():
                work.act()
                due[number] = loop_time() + work.period_s()
