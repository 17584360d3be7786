from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
import uvloop

from workers.exit_watch import MAX_REPEATS, SETTLE_S, ExitWatch
from workers.pidfd import open_pidfd, wait_ended

DEADLINE_S = 5.0
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def test_a_process_that_is_gone_has_no_pidfd() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    assert open_pidfd(process.pid) is None


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_waiting_ends_with_the_process_or_with_the_time(
    loop_factory: Callable[[], asyncio.AbstractEventLoop], sleeper: subprocess.Popen[bytes]
) -> None:
    async def main() -> None:
        pidfd = open_pidfd(sleeper.pid)
        assert pidfd is not None
        assert not await wait_ended(pidfd, 0.05)
        waiting = asyncio.create_task(wait_ended(pidfd, DEADLINE_S))
        sleeper.kill()
        assert await waiting
        assert await wait_ended(pidfd, DEADLINE_S)
        os.close(pidfd)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(main())


class Told:
    """What a watch told, and a way to wait for it."""

    def __init__(self) -> None:
        self.uids: asyncio.Queue[str] = asyncio.Queue()

    async def next(self) -> str:
        async with asyncio.timeout(DEADLINE_S):
            return await self.uids.get()


async def test_a_watch_tells_the_pod_of_a_process_that_ended(sleeper: subprocess.Popen[bytes]) -> None:
    told = Told()
    watch = ExitWatch(open_pidfd, told.uids.put_nowait)
    watch.watch("c1", sleeper.pid, "u1")
    watch.watch("c1", sleeper.pid, "u1")
    assert watch.is_running("c1", sleeper.pid)
    assert not watch.is_running("c1", sleeper.pid + 1)
    assert not watch.is_running("c2", sleeper.pid)
    sleeper.kill()
    assert await told.next() == "u1"
    assert not watch.is_running("c1", sleeper.pid)
    watch.close()


async def test_a_watch_of_a_dead_process_tells_later_and_later_and_then_no_more() -> None:
    told = Told()
    watch = ExitWatch(lambda pid: None, told.uids.put_nowait)
    loop, delays = asyncio.get_running_loop(), []
    for _ in range(4):
        began = loop.time()
        watch.watch("c1", 5, "u1")
        assert await told.next() == "u1"
        delays.append(loop.time() - began)
    assert delays == sorted(delays)
    assert delays[3] > SETTLE_S * 4
    for _ in range(MAX_REPEATS):
        watch.watch("c1", 5, "u1")
    watch.watch("c1", 6, "u2")
    assert await told.next() == "u2"
    watch.close()


async def test_what_is_forgotten_is_not_told(sleeper: subprocess.Popen[bytes]) -> None:
    told = Told()
    watch = ExitWatch(open_pidfd, told.uids.put_nowait)
    watch.watch("c1", sleeper.pid, "u1")
    watch.forget("c1")
    watch.watch("c2", sleeper.pid, "u2")
    watch.retain({"c3"})
    watch.watch("c3", sleeper.pid, "u3")
    sleeper.kill()
    assert await told.next() == "u3"
    assert told.uids.empty()
    watch.close()


async def test_descriptors_are_bounded_and_given_back(sleeper: subprocess.Popen[bytes]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    watch = ExitWatch(open_pidfd, lambda uid: None, max_watches=3)
    for number in range(10):
        watch.watch(f"c{number}", sleeper.pid, "u1")
    assert len(os.listdir("/proc/self/fd")) == before + 3
    assert [watch.is_running(f"c{number}", sleeper.pid) for number in range(4)] == [True, True, True, False]
    watch.close()
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_failure_to_open_is_no_watch() -> None:
    def fail(pid: int) -> int | None:
        raise OSError("too many open files")

    watch = ExitWatch(fail, lambda uid: None)
    watch.watch("c1", 5, "u1")
    assert not watch.is_running("c1", 5)
