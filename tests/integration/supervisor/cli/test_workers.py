"""`rootlet workers restart`: asks, waits for the next incarnation, and says so."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from ipc.link.messages.api_server import FeedSynced, Reply, RestartWorker, WorkerInfo
from tests.support.api_server import Master, agent_changed, eventually
from tests.support.cli import rootlet, run_here

WORKERS = tuple(
    WorkerInfo(slot=slot, role="r", name=name, pid=100 + slot, incarnation=1, state="Running", pods=0, deaths=0)
    for slot, name in ((0, "node"), (1, "api"), (3, "pods-0"))
)


class Agent:
    """Begins a worker anew when it is asked to, and tells of it a moment later."""

    def __init__(self, master: Master) -> None:
        self.asked: list[str] = []
        self.simultaneous = 0
        self._master = master
        self._workers = {worker.name: worker for worker in WORKERS}
        self._tasks: list[asyncio.Task[None]] = []
        master.answer = self.answer
        master.feed(agent_changed(*WORKERS), FeedSynced())

    def answer(self, request: Any) -> Reply:
        assert isinstance(request, RestartWorker)
        if request.name not in self._workers:
            message = f'workers "{request.name}" not found'
            return Reply(request_id=request.request_id, code=404, reason="NotFound", message=message)
        self.asked.append(request.name)
        busy = sum(worker.state != "Running" for worker in self._workers.values())
        self.simultaneous = max(self.simultaneous, busy + 1)
        self._tell(request.name, state="Stopping")
        self._tasks.append(asyncio.get_running_loop().create_task(self._begin_anew(request.name)))
        return Reply(request_id=request.request_id, code=202)

    async def _begin_anew(self, name: str) -> None:
        await asyncio.sleep(0.15)
        self._tell(name, state="Starting", incarnation=2)
        await asyncio.sleep(0.15)
        self._tell(name, state="Running")

    def _tell(self, name: str, **changes: Any) -> None:
        self._workers[name] = msgspec.structs.replace(self._workers[name], **changes)
        self._master.feed(agent_changed(*self._workers.values()))

    def state(self, name: str) -> tuple[int, str]:
        return self._workers[name].incarnation, self._workers[name].state


@pytest.mark.parametrize("name", ["pods-0", "worker/pods-0"])
async def test_restart_returns_when_the_next_incarnation_is_ready(master: Master, name: str) -> None:
    agent = Agent(master)
    done = await rootlet(master, "workers", "restart", name)
    assert (done.code, done.out, done.err) == (0, "worker/pods-0 restarted\n", "")
    assert agent.state("pods-0") == (2, "Running")


async def test_all_are_restarted_one_after_the_other(master: Master) -> None:
    agent = Agent(master)
    done = await rootlet(master, "workers", "restart", "--all")
    assert (done.code, done.out.splitlines()) == (0, [f"worker/{worker.name} restarted" for worker in WORKERS])
    assert agent.asked == [worker.name for worker in WORKERS]
    assert agent.simultaneous == 1


async def test_an_unknown_worker_is_an_error(master: Master) -> None:
    agent = Agent(master)
    done = await rootlet(master, "workers", "restart", "pods-7", "pods-0")
    assert (done.code, done.out) == (1, "")
    assert done.err == 'Error from server (NotFound): workers "pods-7" not found\n'
    assert agent.asked == []


async def test_a_worker_that_does_not_come_back_in_time_is_an_error(master: Master) -> None:
    master.feed(agent_changed(*WORKERS), FeedSynced())
    done = await rootlet(master, "workers", "restart", "node", "--timeout", "300ms")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: timed out waiting for the next incarnation of workers/node\n"
    await eventually(lambda: len(master.requests) == 1, "it was asked for")


@pytest.mark.parametrize("arguments", [(), ("node", "--all")])
def test_somebody_has_to_be_named(arguments: tuple[str, ...]) -> None:
    done = run_here("workers", "restart", *arguments)
    assert done.code == 1
    assert "name the workers, or give --all" in done.err
