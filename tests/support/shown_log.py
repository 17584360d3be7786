"""Text of a log as a client is shown it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from workers.api_server.handlers.log_files import LogOptions, stream_log
from workers.fs.fs_executor import FsExecutor
from workers.logs.open_log import OpenLog


@contextlib.asynccontextmanager
async def open_log(log: Path, since: float = 0.0, deadline_s: float = 30.0) -> AsyncIterator[OpenLog]:
    """The log as the API server reads it, until the block ends."""
    with contextlib.closing(FsExecutor(deadline_s)) as files:
        opened = OpenLog(files, log.parent, log, since)
        await opened.open()
        try:
            yield opened
        finally:
            await opened.close()


async def shown_log(log: Path, options: LogOptions, *, search: bool = False) -> bytes:
    """All that is there now. ``search``: what is older than the options want is passed over."""
    shown = bytearray()

    async def write(data: bytes) -> None:
        shown.extend(data)

    async with open_log(log, options.since) as opened:
        if options.tail_lines is not None:
            await opened.skip_to_tail(options.tail_lines)
        elif search:
            await opened.skip_to_time()
        await stream_log(opened, options, lambda: True, write)
    return bytes(shown)
