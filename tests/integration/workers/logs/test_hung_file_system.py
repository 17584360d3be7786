"""A log on a file system that does not answer: who reads it waits for a bounded time, in a thread, and nobody else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.hung_file_system import hung, is_there
from tests.support.open_files import open_files, open_files_before
from workers.api_server.handlers.log_files import LogOptions, UnreadableLog, stream_log
from workers.fs.fs_executor import FsExecutor
from workers.logs.open_log import OpenLog

DEADLINE_S: Final = 1.0
PATIENCE_S: Final = 20.0
FIRST: Final = b"2026-01-01T00:00:00.000000000Z stdout F first\n"


def pod_log(logs: Path, pod: str) -> Path:
    log = logs / pod / "main" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(FIRST)
    return log


@contextlib.contextmanager
def hung_over(directory: Path) -> Iterator[None]:
    """Another file system lies over that directory, and answers nothing."""
    if not is_there():
        pytest.skip("no fusermount3, or /dev/fuse is not for us")
    with hung(directory):
        yield


async def shown(log: OpenLog, *, follow: bool) -> bytes:
    text = bytearray()

    async def write(data: bytes) -> None:
        text.extend(data)

    await stream_log(log, LogOptions(follow=follow), lambda: False, write, poll_period_s=0.001)
    return bytes(text)


def test_who_follows_a_log_that_hangs_is_told_and_others_read_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        with contextlib.closing(FsExecutor(DEADLINE_S)) as files:
            hangs = OpenLog(files, tmp_path, pod_log(tmp_path, "hangs"))
            await hangs.open()
            following = asyncio.create_task(shown(hangs, follow=True))
            with hung_over(tmp_path / "hangs"):
                other = OpenLog(files, tmp_path, pod_log(tmp_path, "other"))
                await other.open()
                assert await shown(other, follow=False) == b"first\n"
                await other.close()
                with pytest.raises(UnreadableLog, match="timed out waiting for the file system"):
                    await following
                await hangs.close()
            await files.run(hangs.subject, int)  # behind the step that has hung

    before = open_files_before()
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert open_files() == before


def test_a_log_that_hangs_cannot_be_opened_and_takes_one_thread(tmp_path: Path) -> None:
    async def scenario() -> None:
        log = pod_log(tmp_path, "hangs")
        with contextlib.closing(FsExecutor(DEADLINE_S, max_threads=2)) as files, hung_over(tmp_path / "hangs"):
            for _ in range(3):
                opened = OpenLog(files, tmp_path, log)
                with pytest.raises(TimeoutError):
                    await opened.open()
                await opened.close()
            other = OpenLog(files, tmp_path, pod_log(tmp_path, "other"))
            await other.open()
            await other.close()

    before = open_files_before()
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert open_files() == before
