"""Attribution of the event loop's steps: to every task that comes of a command, and to nobody in between."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Callable, Generator, Iterator
from contextvars import Context

import pytest
import uvloop

from ipc.link.shm.board import Board, pod_digest
from workers.sync.attribution import _Attributed, attribute_tasks, on_behalf_of

SLOT = 1
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
A, B = pod_digest("a"), pod_digest("b")


class Worker:
    """A loop whose tasks note in whose steps they are."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.board = Board.create(worker_slots=SLOT + 1, pod_rows=1)
        self.writer = self.board.worker_writer(SLOT)
        self.writer.begin(1, 1)
        attribute_tasks(loop, self.writer.current_pod)
        self.seen: list[int] = []

    @property
    def current_pod(self) -> int:
        row = self.board.read_worker(SLOT)
        assert row is not None
        return row.current_pod

    async def look(self, times: int = 2) -> str:
        for _ in range(times):
            self.seen.append(self.current_pod)
            await asyncio.sleep(0)
        return "looked"

    async def take(self, uid: str, work: Callable[[], object]) -> None:
        """As a command of the master that begins something."""

        async def command() -> None:
            self.seen.append(self.current_pod)
            work()

        await on_behalf_of(uid, command(), self.writer.current_pod)


def test_an_exception_that_was_thrown_in_leaves_no_cycle(worker: Worker) -> None:
    class Thrown(asyncio.CancelledError):
        pass

    class Waits:
        def __await__(self) -> Generator[None, None, None]:
            try:
                yield
            except Thrown as thrown:
                known.append(weakref.ref(thrown))
                raise

    async def wait() -> None:
        await Waits()

    known: list[weakref.ref[Thrown]] = []
    gc.disable()
    try:
        attributed = _Attributed(wait(), A, worker.writer.current_pod)
        attributed.send(None)
        with contextlib.suppress(Thrown):
            attributed.throw(Thrown())
        assert [ref() for ref in known] == [None]
    finally:
        gc.enable()


@pytest.fixture(params=list(LOOPS.values()), ids=list(LOOPS))
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    loop: asyncio.AbstractEventLoop = request.param()
    yield Worker(loop)
    loop.close()


def test_every_step_of_every_task_of_a_command_and_of_nobody_in_between(worker: Worker) -> None:
    async def nested() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.look())
        await asyncio.gather(worker.look())
        await asyncio.wait_for(worker.look(), 30.0)
        async with asyncio.timeout(30.0):
            await worker.look()

    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []
        await worker.take("a", lambda: tasks.append(worker.loop.create_task(nested())))
        assert worker.current_pod == 0
        while not tasks[0].done():
            await asyncio.sleep(0)
            assert worker.current_pod == 0
        assert set(worker.seen) == {A}

    worker.loop.run_until_complete(main())


def test_tasks_of_two_pods_side_by_side_each_note_their_own(worker: Worker) -> None:
    async def main() -> None:
        tasks: list[asyncio.Task[str]] = []
        for uid in "ab":
            await worker.take(uid, lambda: tasks.append(worker.loop.create_task(worker.look(3))))
        await asyncio.gather(*tasks, worker.look(3))
        assert worker.seen == [A, B, *(A, B, 0) * 3]

    worker.loop.run_until_complete(main())


def test_a_context_of_nobody_s_is_nobody_s(worker: Worker) -> None:
    async def main() -> None:
        tasks: list[asyncio.Task[str]] = []
        await worker.take("a", lambda: tasks.append(worker.loop.create_task(worker.look(), context=Context())))
        assert await tasks[0] == "looked"
        assert worker.seen == [A, 0, 0]

    worker.loop.run_until_complete(main())


def test_results_errors_cancellations_and_names_of_tasks_are_as_ever(worker: Worker) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("as ever")

    async def cleans_up(noted: list[int]) -> None:
        try:
            await asyncio.sleep(3600.0)
        finally:
            noted.append(worker.current_pod)

    async def main() -> None:
        noted: list[int] = []
        tasks: list[asyncio.Task[object]] = []

        def begin() -> None:
            tasks.append(worker.loop.create_task(worker.look()))
            tasks.append(worker.loop.create_task(fail()))
            tasks.append(worker.loop.create_task(cleans_up(noted), name="cleans up"))

        await worker.take("a", begin)
        observation_requests, fails, waits = tasks
        assert await observation_requests == "looked"
        with pytest.raises(ValueError, match="as ever"):
            await fails
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert noted == [A]
        assert worker.current_pod == 0
        assert "fail()" in repr(fails)
        assert waits.get_name() == "cleans up"

    worker.loop.run_until_complete(main())
