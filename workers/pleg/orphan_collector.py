"""Collector of orphans: processes of containers that a Podman that died has left behind.

It searches at the start of the node worker and after every death of Podman, as soon as a relist succeeds; and again
after the next one as long as a container that was being made is undecided: it is first known and then replaced.
"""

from __future__ import annotations

import asyncio
import logging

from ipc.link.eventloop.tasks import note_failure
from workers.kubecontainer.runtime import Runtime, RuntimeCallError

log = logging.getLogger(__name__)


class OrphanCollector:
    """Ends orphans of one instance, which is known by its ``pod_logs_dir``."""

    def __init__(self, runtime: Runtime, pod_logs_dir: str) -> None:
        self._runtime = runtime
        self._pod_logs_dir = pod_logs_dir
        self._due = True
        self._wake = asyncio.Event()

    @property
    def is_due(self) -> bool:
        """Whether the next relist starts a search: something of an interruption may be undecided."""
        return self._due

    def podman_was_lost(self) -> None:
        """Podman may have died in the middle of a call."""
        self._due = True

    def relisted(self) -> None:
        """A relist has succeeded: Podman answers."""
        if self._due:
            self._wake.set()

    async def collect(self) -> None:
        """Search whenever that is due. Runs for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._due = False
            try:
                found = await self._runtime.end_leftovers(self._pod_logs_dir)
            except Exception as error:
                if not isinstance(error, RuntimeCallError | OSError):
                    note_failure("leftover processes", error)
                log.warning("cannot search for processes that Podman has lost: %s", error)
                self._due = True
                continue
            self._due |= found.unsettled
            for name in found.ended:
                log.info("ended %s, which Podman did not know any more", name)
