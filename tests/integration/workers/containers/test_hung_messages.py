"""Termination messages and marks of starts that lie where nobody answers. On a real loop, with real threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import SystemClock
from tests.fakes.ownership import ownership
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from tests.harness.runtime_values import UID, container_labels, inspected
from tests.hung_file_system import hung, is_there
from workers.containers.known_containers import KnownContainers
from workers.fs.fs_executor import PATIENCE_S, TIMED_OUT
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import InspectedContainer, RuntimeCallError
from workers.pleg.observer import Observer

TICK_S = 0.01

pytestmark = pytest.mark.skipif(not is_there(), reason="needs FUSE and fusermount3")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    made = tmp_path / "logs"
    made.mkdir()
    return made


@pytest.fixture
async def known(tmp_path: Path, logs: Path) -> KnownContainers:
    clock = SystemClock()
    return KnownContainers(
        FakeRuntime(FakePodman(clock), "test"),
        clock,
        ownership=ownership("test"),
        pod_logs_dir=str(logs),
        pods_dir=str(tmp_path / "pods"),
        on_exit=lambda uid: None,
    )


def container(logs: Path, state: str, **fields: Any) -> InspectedContainer:
    """One that tells by its log why it has failed."""
    own = {labels.TERMINATION_MESSAGE_PATH: "/log", labels.TERMINATION_MESSAGE_POLICY: "FallbackToLogsOnError"}
    log = logs / "below" / "main" / "0.log"
    known = {"state": state, "pid": 0, "exit_code": 1, "log_path": str(log), **fields}
    return inspected("c1", labels=container_labels("main", 0, **own), **known)


@asynccontextmanager
async def going_on() -> AsyncIterator[None]:
    """The loop runs other tasks meanwhile."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(TICK_S)
            ticks += 1

    ticking = asyncio.ensure_future(tick())
    try:
        yield
    finally:
        ticking.cancel()
    assert ticks > PATIENCE_S / TICK_S / 10


async def test_a_log_that_does_not_answer_is_what_the_message_says(known: KnownContainers, logs: Path) -> None:
    with hung(logs):
        known.recall(container(logs, "exited"), 1.0)
        async with going_on():
            await known.read_messages(UID)
        [told] = known.status(UID, (), ["c1"], 1.0).containers
        assert TIMED_OUT in told.message
    file = logs / "below" / "main" / "0.log"
    file.parent.mkdir(parents=True)
    file.write_text("2026-11-20T08:37:22.791861700+00:00 stdout F out of eggs\n")
    await known.files.run("logs", int)  # the thread that hung has ended
    known.recall(container(logs, "exited"), 2.0)
    await known.read_messages(UID)
    [told] = known.status(UID, (), ["c1"], 2.0).containers
    assert told.message == "out of eggs\n"
    known.close()


async def test_a_start_of_which_nobody_can_say_whether_it_failed_is_no_observation(
    known: KnownContainers, logs: Path
) -> None:
    observer = Observer(FakeRuntime(FakePodman(SystemClock()), "test"), SystemClock(), known)
    with hung(logs):
        known.recall(container(logs, "created", exit_code=0, started_at=0.0, finished_at=0.0), 1.0)
        async with going_on():
            with pytest.raises(RuntimeCallError, match=TIMED_OUT):
                await observer._status(UID, (), ["c1"], 1.0)
    observer.close()
