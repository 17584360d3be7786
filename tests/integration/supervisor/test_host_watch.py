"""The watch over the configuration's devices: a node below /dev that comes, is no device for a while, and goes."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.link.shm.board import Board
from supervisor.admission.node_devices import not_healthy, read_devices
from supervisor.config.settings import Seconds, Settings
from supervisor.control.configuration import Configuration
from supervisor.host_watch import HostWatch
from supervisor.protocol.events import DevicesChanged, LoopEvent

RESOURCE = "example.com/serial"
DEADLINE_S = 20.0


@pytest.fixture
def node() -> Iterator[Path]:
    """A path below /dev, where only /dev/shm is a user's to write to, with nothing there yet."""
    with tempfile.TemporaryDirectory(prefix="rootlet-devices-", dir="/dev/shm") as directory:
        yield Path(directory, "tty")


async def test_a_node_is_given_out_while_it_is_a_device(node: Path) -> None:
    settings = Settings(devices={RESOURCE: (str(node), "/dev/null")}, node_status_update_frequency_s=Seconds(0.01))
    told: asyncio.Queue[LoopEvent] = asyncio.Queue()
    problems: list[str] = []
    changes: list[None] = []

    async def next_problem() -> str:
        """Why the node cannot be given out by the newest look; the other device always can."""
        async with asyncio.timeout(DEADLINE_S):
            event = await told.get()
        assert isinstance(event, DevicesChanged)
        assert event.devices[RESOURCE]["/dev/null"].problem == ""
        return event.devices[RESOURCE][str(node)].problem

    first = read_devices(settings)
    assert not_healthy(first) == {RESOURCE: "1"}
    watch = HostWatch(
        Configuration(settings, None),
        Board.create(worker_slots=1, pod_rows=1),
        first,
        told.put_nowait,
        lambda _, text: problems.append(text),
    )
    task = asyncio.create_task(watch.watch_devices(lambda: changes.append(None)))
    try:
        os.symlink("/dev/zero", node)
        assert await next_problem() == ""
        assert watch.unhealthy_devices == {}
        other = node.with_name("file")
        other.touch()
        other.replace(node)
        assert await next_problem() == f"{node}: is not a device"
        os.unlink(node)
        assert await next_problem() == f"{node}: No such file or directory"
        assert watch.unhealthy_devices == {RESOURCE: "1"}
    finally:
        task.cancel()
    assert [each.partition(": ")[0] for each in problems] == [RESOURCE] * 2
    assert told.empty(), "what has not changed is not told"
    assert len(changes) == 3
