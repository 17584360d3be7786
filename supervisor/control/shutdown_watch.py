"""Keeps hold of logind: a delay inhibitor while the agent runs, and its notice of a shutdown. Reconnects for good."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ipc.link.eventloop.tasks import BackgroundTasks, ignored
from supervisor.control.logind import FIRST_PAUSE_S, MAX_PAUSE_S, Logind, LogindError

log = logging.getLogger(__name__)

DELAY_TOO_SHORT: Final = (
    "logind waits for {available:g}s, shutdownGracePeriod is {wanted:g}s: each group of pods gets its share of that;"
    " root may set InhibitDelayMaxSec={wanted:g} in /etc/systemd/logind.conf.d/"
)


class ShutdownWatch:
    """One task of the master. ``notice`` is called with the seconds that logind gives, or None: the host stays up."""

    def __init__(self, wanted_s: float, notice: Callable[[float | None], None]) -> None:
        self._wanted_s = wanted_s
        self._notice = notice
        self._available_s = wanted_s
        """Seconds that logind gives, as far as it has said."""
        self._logind: Logind | None = None
        self._complaint = ""
        self._tasks = BackgroundTasks()

    async def run(self) -> None:
        """Watch for the host's shutdown for ever. A bus that is not there is told once, and asked again."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                await self._hold()
                pause_s = FIRST_PAUSE_S
            except LogindError as error:
                self._tell(f"pods will not end in order with the host: {error}")
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def release(self) -> None:
        """The pods have ended: the host may go down."""
        if self._logind is not None:
            self._logind.release()

    async def _hold(self) -> None:
        """From one connection to its end. Raises LogindError."""
        self._logind = logind = await Logind.connect()
        try:
            await self._ask_delay(logind)
            notices: asyncio.Queue[bool | None] = asyncio.Queue()
            self._tasks.spawn(_end(logind, notices), name="end of the system bus", on_failure=ignored)
            await logind.listen(notices.put_nowait)
            is_preparing = await self._inhibit(logind)
            if notices.empty():  # else something newer was said meanwhile
                notices.put_nowait(is_preparing)
            await self._follow(logind, notices)
        finally:
            self._tasks.cancel()
            self._logind = None
            await logind.close()

    async def _inhibit(self, logind: Logind) -> bool:
        """Take the inhibitor; whether the host goes down already, and there is none to be had. Raises LogindError."""
        try:
            await logind.inhibit()
        except LogindError:
            if not await logind.is_preparing():
                raise
            return True
        return await logind.is_preparing()

    async def _follow(self, logind: Logind, notices: asyncio.Queue[bool | None]) -> None:
        while (is_active := await notices.get()) is not None:
            if is_active:
                with suppress(LogindError):  # what it has said before has to do
                    await self._ask_delay(logind)
            else:
                await logind.inhibit()
            self._notice(self._available_s if is_active else None)

    async def _ask_delay(self, logind: Logind) -> None:
        """Ask anew for every shutdown: a logind that reads its configuration again says nothing. Raises LogindError."""
        self._available_s = await logind.inhibit_delay_s()
        if self._available_s < self._wanted_s:
            self._tell(DELAY_TOO_SHORT.format(available=self._available_s, wanted=self._wanted_s))

    def _tell(self, complaint: str) -> None:
        if complaint != self._complaint:
            log.warning("%s", complaint)
        self._complaint = complaint


async def _end(logind: Logind, notices: asyncio.Queue[bool | None]) -> None:
    try:
        await logind.until_gone()
    finally:
        notices.put_nowait(None)
