"""Termination messages and marks of starts that lie where nobody answers. On a real loop, with real threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ipc.host.clock import SystemClock
from tests.contract.target import FAKE_IMAGE, FakeTarget, container_spec, pod_spec
from tests.fakes.ownership import ownership
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from tests.support.hung_file_system import hung, is_there
from tests.support.runtime_values import UID, container_labels, inspected
from workers.containers.known_containers import KnownContainers
from workers.fs.fs_executor import PATIENCE_S, TIMED_OUT
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import InspectedContainer, Runtime, RuntimeCallError
from workers.pleg.observer import Observer

TICK_S = 0.01

pytestmark = pytest.mark.skipif(not is_there(), reason="needs FUSE and fusermount3")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    made = tmp_path / "logs"
    made.mkdir()
    return made


def watched(runtime: Runtime, logs: Path, instance: str) -> KnownContainers:
    return KnownContainers(
        runtime,
        SystemClock(),
        ownership=ownership(instance),
        pod_logs_dir=str(logs),
        pods_dir=str(logs.with_name("pods")),
        on_exit=lambda uid: None,
    )


def ended(logs: Path) -> InspectedContainer:
    """One that tells by its log why it has failed."""
    own = {labels.TERMINATION_MESSAGE_PATH: "/log", labels.TERMINATION_MESSAGE_POLICY: "FallbackToLogsOnError"}
    log = logs / "below" / "main" / "0.log"
    known = {"state": "exited", "pid": 0, "exit_code": 1, "log_path": str(log)}
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


async def test_a_log_that_does_not_answer_is_what_the_message_says(logs: Path) -> None:
    known = watched(FakeRuntime(FakePodman(SystemClock()), "test"), logs, "test")
    with hung(logs):
        known.recall(ended(logs), 1.0)
        async with going_on():
            await known.read_messages(UID)
        [reported] = known.status(UID, (), ["c1"], 1.0).containers
        assert TIMED_OUT in reported.message
    file = logs / "below" / "main" / "0.log"
    file.parent.mkdir(parents=True)
    file.write_text("2026-11-20T08:37:22.791861700+00:00 stdout F out of eggs\n")
    await known.files.run("logs", int)  # the thread that hung has ended
    known.recall(ended(logs), 2.0)
    await known.read_messages(UID)
    [reported] = known.status(UID, (), ["c1"], 2.0).containers
    assert reported.message == "out of eggs\n"
    known.close()


async def test_a_start_of_which_nobody_can_say_whether_it_failed_is_no_observation(logs: Path) -> None:
    target = FakeTarget(FakePodman(SystemClock(), images=[FAKE_IMAGE]))
    sandbox = await target.runtime.create_pod(pod_spec(target, "u1"))
    await target.runtime.create_container(container_spec(target, sandbox, uid="u1"))
    seen = watched(target.runtime, logs, target.instance)
    observer = Observer(target.runtime, SystemClock(), seen)
    with hung(logs):
        async with going_on():
            with pytest.raises(RuntimeCallError, match=TIMED_OUT):
                await observer.observe("u1", listing=True)
    observer.close()
    await target.clean()
