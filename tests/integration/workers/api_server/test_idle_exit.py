"""The API server leaves when nobody has asked for long, and loses nobody who comes in that moment."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import socket
from pathlib import Path
from typing import Final

import uvloop

from ipc.host.clock import monotonic
from ipc.link.messages.api_server import PodChanged
from ipc.link.wire.boot import EXIT_IDLE
from tests.support.api_server import DEADLINE_S, Master, api_server, listen_at, pod_changed, watching
from tests.support.raw_libpod import UnixConnection

PODS: Final = "/api/v1/pods"
SHORT_S: Final = 0.05
LONG_S: Final = 0.5
MOMENT_S: Final = 0.004
REQUESTS: Final = 300
NAMES: Final = ("db", "web")
SEED: Final = 20261120


async def exit_code(master: Master) -> int:
    assert master.server is not None
    async with asyncio.timeout(DEADLINE_S):
        return await asyncio.shield(master.server)


def is_there(master: Master) -> bool:
    assert master.server is not None
    return not master.server.done()


async def after(seconds: float) -> None:
    """Wait that long, to show that nothing happens in that time."""
    await asyncio.sleep(seconds)


def everything() -> list[PodChanged]:
    return [pod_changed(version, name) for version, name in enumerate(NAMES, 1)]


async def test_it_leaves_when_nobody_has_come(tmp_path: Path) -> None:
    began_at = monotonic()
    async with api_server(tmp_path, idle_timeout_s=SHORT_S) as master:
        assert await exit_code(master) == EXIT_IDLE
        assert monotonic() - began_at >= SHORT_S


async def test_changes_that_nobody_looks_at_keep_it_not(tmp_path: Path) -> None:
    async with api_server(tmp_path, idle_timeout_s=SHORT_S) as master:
        master.ready()
        version = 0
        async with asyncio.timeout(DEADLINE_S):
            while is_there(master):
                version += 1
                master.feed(pod_changed(version, "web"))
                await asyncio.sleep(SHORT_S / 5)
        assert await exit_code(master) == EXIT_IDLE


async def test_who_asks_now_and_then_keeps_it(tmp_path: Path) -> None:
    async with api_server(tmp_path, idle_timeout_s=LONG_S) as master:
        master.ready()
        until = monotonic() + 2.5 * LONG_S
        while monotonic() < until:
            assert await asyncio.to_thread(ask, master.socket_path) == []
            await after(LONG_S / 10)
            assert is_there(master)
        assert await exit_code(master) == EXIT_IDLE


async def test_a_watch_keeps_it_for_as_long_as_it_is_open(tmp_path: Path) -> None:
    async with api_server(tmp_path, idle_timeout_s=SHORT_S) as master:
        master.ready()
        async with watching(master) as watch:
            await after(5 * SHORT_S)
            assert is_there(master)
            master.feed(pod_changed(1, "web"))
            assert await watch.take(1) == [("ADDED", "web")]
        assert await exit_code(master) == EXIT_IDLE


async def test_a_connection_that_is_kept_for_later_does_not_keep_it(tmp_path: Path) -> None:
    """A silent connection is closed after the same time, but never sooner than `MIN_SILENCE_S`."""
    async with api_server(tmp_path, idle_timeout_s=SHORT_S) as master:
        master.ready()
        code, _ = await master.get(PODS)
        assert code == 200
        assert await exit_code(master) == EXIT_IDLE


async def test_a_client_that_is_slow_to_ask_is_served(tmp_path: Path) -> None:
    """Long after the idle timeout, but before `MIN_SILENCE_S`."""
    async with api_server(tmp_path, idle_timeout_s=SHORT_S) as master:
        master.ready()
        connection = UnixConnection(str(master.socket_path))
        connection.connect()
        try:
            await after(5 * SHORT_S)
            await asyncio.to_thread(connection.request, "GET", PODS)
            answer = await asyncio.to_thread(connection.getresponse)
            assert answer.status == http.client.OK
        finally:
            connection.close()


def ask(path: Path) -> list[str]:
    """On a connection of its own, once: the names of all pods. Raises OSError, HTTPException."""
    connection = UnixConnection(str(path))
    try:
        connection.request("GET", PODS)
        answer = connection.getresponse()
        assert answer.status == http.client.OK
        return [pod["metadata"]["name"] for pod in json.loads(answer.read())["items"]]
    finally:
        connection.close()


async def ask_at_any_moment(path: Path, rng: random.Random) -> None:
    """None of them is asked twice."""
    for _ in range(REQUESTS):
        await asyncio.sleep(rng.uniform(0, 4 * MOMENT_S))
        assert await asyncio.to_thread(ask, path) == list(NAMES)


async def leave_again_and_again(directory: Path, listen: socket.socket, client: asyncio.Task[None]) -> int:
    """How many incarnations there were, each as soon as the one before had left."""
    left = 0
    while not client.done():
        async with api_server(directory, listen, idle_timeout_s=MOMENT_S) as master:
            master.ready(*everything())
            assert await exit_code(master) == EXIT_IDLE
        left += 1
    return left


def test_a_connection_that_comes_while_it_leaves_is_served_by_the_next_one(tmp_path: Path) -> None:
    """On the product's event loop."""

    async def storm() -> int:
        path = tmp_path / "rootlet.sock"
        with listen_at(path) as listen:
            client = asyncio.create_task(ask_at_any_moment(path, random.Random(SEED)))
            left = await leave_again_and_again(tmp_path, listen, client)
            await client
        return left

    assert uvloop.run(storm()) > REQUESTS // 10, "it left often enough to be met in that moment"
