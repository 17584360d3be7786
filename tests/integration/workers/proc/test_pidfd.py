from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable

import pytest
import uvloop

from workers.proc.pidfd import open_pidfd, wait_ended

DEADLINE_S = 30.0
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


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
