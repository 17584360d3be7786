"""The way of the sources' changes into the sync loop."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any

from ipc.link.eventloop.tasks import BackgroundTasks
from supervisor.source_feed import SourceFeed
from supervisor.sources.manager import Change


class Part(list[Any]):
    """Part of a change, which says whether anybody holds the change: a tuple cannot be referred to weakly."""


class Source:
    """A source that states one change, and then nothing for ever."""

    all_ready = own_ready = False

    def __init__(self, made: Callable[[], Change]) -> None:
        self._made = made
        self.is_waited_for = asyncio.Event()

    async def watch(self) -> AsyncIterator[Change]:
        yield self._made()
        self.is_waited_for.set()
        await asyncio.Event().wait()


def nothing(*_what: Any) -> None:
    return


def test_a_change_is_not_held_until_the_next_one() -> None:
    """Pods that are gone leave the memory at once: the next change may be hours away."""
    told: list[weakref.ref[Part]] = []

    def made() -> Change:
        updates: Any = Part()
        told.append(weakref.ref(updates))
        return Change(updates=updates)

    async def fed() -> None:
        source: Any = Source(made)
        feed = SourceFeed(
            source,
            BackgroundTasks(),
            feed=nothing,
            node_event=nothing,
            preflight=nothing,
            sources_ready=nothing,
            cluster_listed=nothing,
        )
        feed.may_begin()
        running = asyncio.create_task(feed.run())
        waiting = asyncio.create_task(source.is_waited_for.wait())
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        assert waiting.done(), running
        [held] = told
        assert held() is None
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(fed())
