"""Signals that the agent sends by pidfd: what Podman says after them is what it says after its own."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from tests.contract.target import DEADLINE_S, LyingTarget, exited, running
from workers.kubecontainer.runtime import ContainerProcess

# The simulated service has no monitors, without which it alone signals.
pytestmark = pytest.mark.parametrize(
    "target", ["fake", pytest.param("podman", marks=pytest.mark.podman)], indirect=True
)

NOWHERE = "0123456789abcdef" * 4
"""An id that nothing has."""


@pytest.mark.parametrize(("signal", "code"), [("SIGTERM", 7), ("SIGUSR1", 7), ("SIGKILL", 137)])
async def test_a_signal_past_podman_ends_a_container_as_podmans_does(
    target: LyingTarget, signal: str, code: int
) -> None:
    name = signal.removeprefix("SIG")
    script = f"trap 'exit 7' {name}; sleep 1000 & wait" if code == 7 else "sleep 1000"
    containers = [await running(target, ["sh", "-c", script]) for _ in range(2)]
    first, second = containers
    async with asyncio.timeout(DEADLINE_S):  # The shell may not have come to its trap when the first one arrives.
        while not await target.runtime.wait_exit(first.process, 0.2):
            assert target.runtime.signal_process(first.process, signal)
        while not await target.runtime.wait_exit(second.process, 0.2):
            await target.runtime.kill_container(second.id, signal)
    past, by_podman = [await exited(target, container.id, "exited") for container in containers]
    assert (past.exit_code, past.state, past.error) == (code, by_podman.state, by_podman.error)
    assert (by_podman.exit_code, past.pid, past.oom_killed) == (code, by_podman.pid, by_podman.oom_killed)
    assert past.finished_at >= past.started_at == first.started_at


async def test_who_is_not_known_is_not_signalled_past_podman(target: LyingTarget) -> None:
    container = await running(target)
    earlier = msgspec.structs.replace(container.process, start_ticks=container.start_ticks - 1)
    unknown = msgspec.structs.replace(container.process, start_ticks=0)
    for process in (earlier, unknown, ContainerProcess(container_id=NOWHERE)):
        assert not target.runtime.signal_process(process, "SIGKILL")
    assert not target.runtime.signal_process(container.process, "SIGNOSUCH")
    assert (await target.runtime.inspect_container(container.id)).pid == container.pid
    await target.runtime.kill_container(container.id, "KILL")
    assert await target.runtime.wait_exit(container.process, DEADLINE_S)
    assert not target.runtime.signal_process(container.process, "SIGKILL"), "it has ended"


async def test_without_its_monitor_a_container_is_podmans_to_signal(target: LyingTarget) -> None:
    container = await running(target)
    await target.kill_monitor(container)
    assert not target.runtime.signal_process(container.process, "SIGKILL")
    assert not await target.runtime.wait_exit(container.process, 0.1)


async def test_the_monitor_has_recorded_an_end_by_the_time_that_podman_says_so(target: LyingTarget) -> None:
    container = await running(target)
    assert target.runtime.recorded_end(container.process) is None
    assert target.runtime.signal_process(container.process, "SIGKILL")
    async with asyncio.timeout(DEADLINE_S):
        while target.runtime.recorded_end(container.process) is None:  # noqa: ASYNC110 - another program's file
            await asyncio.sleep(0.001)
    assert (await target.runtime.inspect_container(container.id)).state in ("stopped", "exited")
