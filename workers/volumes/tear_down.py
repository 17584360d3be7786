"""Take away what `set_up` has made, after any crash, following nothing that leads elsewhere."""

from __future__ import annotations

from workers.sync_context import SyncRun


async def tear_down_volumes(run: SyncRun) -> None:
    """Of a pod whose containers are gone. Everything that can go goes; raises SyncEnded when something stays."""
