"""The clock of an event loop. It stands apart from `clock`, so that commands without a loop do not import asyncio."""

from __future__ import annotations

import asyncio


def loop_time() -> float:
    """Seconds on the running event loop's clock, in which asyncio counts its deadlines. Raises RuntimeError without a
    loop."""
    return asyncio.get_running_loop().time()
