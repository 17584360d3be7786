"""The node worker's task of container logs: what it looks at, when, and what becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.kubecontainer.log_rotate_policy import LogRotatePolicy
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from tests.support.hung_file_system import hung, is_there
from tests.support.log_monitor import LogMonitor
from tests.support.pods import observed, pod, seen
from workers.fs import growth_watch
from workers.fs.fs_executor import TIMED_OUT
from workers.logs import container_log_manager, layout
from workers.logs.container_log_manager import LEAST_PAUSE_S, ContainerLogManager, pause_s

DEADLINE_S = 30.0
POLICY = LogRotatePolicy(max_size_bytes=4096, max_files=4, monitor_interval_s=0.05)
POD = pod("main")
LINES = 200
"""More than 4096 bytes."""


class Node:
    """One running container, and the manager that follows its log."""

    def __init__(self, directory: Path, policy: LogRotatePolicy = POLICY) -> None:
        meta = POD.metadata
        of_pod = layout.pod_directory(str(directory / "logs"), meta.namespace, meta.name, meta.uid)
        self.log = layout.log_file(of_pod, "main", 0)
        self.monitor = LogMonitor(self.log, directory)
        self.monitor_pid = os.getpid()
        self.manager = ContainerLogManager(
            str(directory / "logs"), policy, monitor_of=lambda _: self.monitor_pid, clock=SystemClock()
        )

    def status(self, state: ContainerState = ContainerState.RUNNING) -> RuntimePodStatus:
        return observed(POD, seen(POD, "main", state, id="c1"))

    def names(self) -> list[str]:
        return sorted(name for name in os.listdir(self.log.parent) if not name.endswith(".tmp"))

    async def monitor_works(self) -> None:
        while True:
            self.monitor.read()
            self.monitor.reopen()
            await asyncio.sleep(0.005)


def write_to_all(paths: Iterable[str]) -> None:
    for path in paths:
        Path(path).write_text("x")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def running(node: Node) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(node.manager.run()), asyncio.create_task(node.monitor_works())]
    try:
        yield
    finally:
        await node.manager.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        node.monitor.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container_log_manager, "LEAST_PAUSE_S", 0.02)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Files that were looked at."""
    seen: list[str] = []

    measured = container_log_manager._Look.measured

    def noted(look: container_log_manager._Look) -> tuple[int, int]:
        found = measured(look)
        seen.append(look._path)
        return found

    monkeypatch.setattr(container_log_manager._Look, "measured", noted)
    return seen


async def test_a_log_that_grows_is_rotated_compressed_and_bounded(tmp_path: Path) -> None:
    node = Node(tmp_path)
    async with running(node):
        node.manager.follow(node.status())
        for count in range(2, 5):
            node.monitor.write(LINES)
            await until(lambda: len(node.names()) == count and node.log.stat().st_size == 0)  # noqa: B023
        oldest = node.names()[1]
        node.monitor.write(LINES)
        await until(lambda: oldest not in node.names() and node.log.stat().st_size == 0)
        await until(lambda: [name.endswith(".gz") for name in node.names()] == [False, True, True, False])


@pytest.mark.skipif(not is_there(), reason="no fusermount3, or /dev/fuse is not for us")
async def test_a_log_whose_file_system_does_not_answer_holds_up_nobody_and_is_rotated_when_it_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The test's own waiting is on the loop that a look would hold up."""
    node = Node(tmp_path)
    async with running(node):
        with hung(node.log.parent.parent):
            node.manager.follow(node.status())
            await until(lambda: any(TIMED_OUT in record.getMessage() for record in caplog.records))
            await asyncio.sleep(10 * POLICY.monitor_interval_s)
        node.monitor.write(LINES)
        await until(lambda: len(node.names()) == 2)
    assert len([record for record in caplog.records if TIMED_OUT in record.getMessage()]) == 1, "it is told once"


async def test_a_log_that_does_not_grow_is_not_looked_at(tmp_path: Path, looks: list[str]) -> None:
    node = Node(tmp_path)
    async with running(node):
        node.manager.follow(node.status())
        await until(lambda: len(looks) == 1)
        await asyncio.sleep(10 * POLICY.monitor_interval_s)
        assert len(looks) == 1
        node.monitor.write(1)
        await until(lambda: len(looks) == 2)
        await asyncio.sleep(10 * POLICY.monitor_interval_s)
        assert len(looks) == 2
        node.manager.follow(node.status(ContainerState.EXITED))
        node.monitor.write(LINES)
        await asyncio.sleep(10 * POLICY.monitor_interval_s)
        assert len(looks) == 2, "a container that has ended writes nothing"


async def test_without_watches_every_log_is_looked_at_in_every_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: list[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device (fs.inotify.max_user_watches)")

    monkeypatch.setattr(growth_watch.GrowthWatch, "arm", full)
    node = Node(tmp_path)
    async with running(node):
        node.manager.follow(node.status())
        await until(lambda: len(looks) > 2)
        node.monitor.write(LINES)
        await until(lambda: len(node.names()) == 2)


async def test_many_logs_are_looked_at_in_their_turn(tmp_path: Path, looks: list[str]) -> None:
    node = Node(tmp_path)
    pods = [pod("main", uid=f"uid-{number}", name=f"web-{number}") for number in range(300)]
    for each in pods:
        directory = layout.pod_directory(str(tmp_path / "logs"), "default", each.metadata.name, each.metadata.uid)
        log = layout.log_file(directory, "main", 0)
        log.parent.mkdir(parents=True)
        log.touch()
    async with running(node):
        for each in pods:
            name = each.metadata.name
            node.manager.follow(observed(each, seen(each, "main", ContainerState.RUNNING, id=name)))
        await until(lambda: len(looks) == 300)
        write_to_all(reversed(list(looks)))
        await until(lambda: len(looks) == 600)
        assert sorted(looks) == sorted(2 * looks[:300])
        for each in pods:
            node.manager.follow(observed(each))


async def test_what_was_begun_by_another_process_is_finished(tmp_path: Path) -> None:
    node = Node(tmp_path)
    first, second = (node.log.with_name(f"0.log.2020010{day}-000000") for day in (1, 2))
    first.write_bytes(b"first\n")
    first.with_name(f"{first.name}.tmp").write_bytes(b"half")
    second.write_bytes(b"second\n")
    status = node.status()
    before = tuple(msgspec.structs.replace(container, started_at=1.0) for container in status.containers)
    async with running(node):
        node.manager.follow(msgspec.structs.replace(status, containers=before))
        await until(lambda: node.names() == ["0.log", f"{first.name}.gz", second.name])
        assert not list(node.log.parent.glob("*.tmp"))


async def test_another_policy_counts_at_once(tmp_path: Path) -> None:
    node = Node(tmp_path, LogRotatePolicy(max_size_bytes=-1))
    node.monitor.write(LINES)
    async with running(node):
        node.manager.follow(node.status())
        await asyncio.sleep(0.1)
        assert node.names() == ["0.log"]
        node.manager.set_policy(POLICY)
        await until(lambda: len(node.names()) == 2)


async def test_a_monitor_that_cannot_be_told_is_tried_again_and_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(tmp_path)
    node.monitor.write(LINES)
    node.monitor_pid = 0
    with caplog.at_level(logging.DEBUG, logger=container_log_manager.__name__):
        async with running(node):
            node.manager.follow(node.status())
            await until(lambda: len(caplog.records) > 2)
            assert [record.levelname for record in caplog.records][:3] == ["WARNING", "DEBUG", "DEBUG"]
            assert node.names() == ["0.log"]
            node.monitor_pid = os.getpid()
            await until(lambda: len(node.names()) == 2)


@pytest.mark.parametrize(
    ("size", "grown", "within_s", "pause"),
    [
        (0, 0, math.inf, 0.02),
        (100, 0, 1.0, 10.0),
        (4096, 4096, 1.0, 10.0),
        (1 << 20, 1 << 20, 1.0, 9.0),
        (5 << 20, 5 << 20, 2.0, 2.0),
        (9 << 20, 9 << 20, 0.1, 0.02),
        (20 << 20, 20 << 20, 1.0, 0.02),
    ],
)
def test_how_soon_a_log_is_looked_at_again(size: int, grown: int, within_s: float, pause: float) -> None:
    policy = LogRotatePolicy(max_size_bytes=10 << 20)
    assert pause_s(policy, size, grown, within_s) == pytest.approx(pause)


def test_the_least_pause() -> None:
    assert LEAST_PAUSE_S == 1.0, "names count seconds"
