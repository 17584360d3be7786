"""Waits for conditions of streams under test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

STILL_S = 0.5


async def until_still(value: Callable[[], int]) -> None:
    """Until that number has not changed for half a second, having begun: nobody takes more."""
    before = 0
    while value() != before or not before:
        before = value()
        await asyncio.sleep(STILL_S)
