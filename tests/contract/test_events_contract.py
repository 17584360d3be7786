"""Hints of events: by Podman's stream, and by its file of events where the service is the agent's own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w

from supervisor.config.containers_conf import read_conf
from tests.contract.conftest import OWN_PODMAN, PODMAN
from tests.contract.target import DEADLINE_S, PodmanTarget, Target, exited, running
from tests.support.podman_service import PodmanService, running_service
from tests.support.raw_libpod import Libpod
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import RuntimeEvent
from workers.libpod.connection import Connection
from workers.podman_files.event_log import NAME

ALL = pytest.mark.parametrize("target", ["fake", "server", PODMAN, OWN_PODMAN], indirect=True)


@ALL
async def test_an_end_is_hinted_at(target: Target) -> None:
    """Hints come late, so the test waits for one that names its container; the stream is open before anything ends."""
    died = asyncio.Event()
    seen: list[RuntimeEvent] = []

    async def listen() -> None:
        async for event in target.runtime.events():
            seen.append(event)
            if event.action == "died":
                died.set()

    listening = asyncio.create_task(listen())
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not died.is_set():  # Until the stream is open, what happens is not told.
                container = await running(target, ["true"])
                await exited(target, container.id)
                await asyncio.wait({asyncio.create_task(died.wait())}, timeout=1.0)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    (event, *_) = [event for event in seen if event.action == "died"]
    assert event.labels[labels.POD_UID] == "u1"
    assert event.labels[labels.INSTANCE] == target.instance
    assert event.time > 0


@ALL
async def test_strangers_get_no_hints(target: Target) -> None:
    stranger = target.stranger()
    heard: list[RuntimeEvent] = []

    async def listen() -> None:
        async for event in stranger.events():
            heard.append(event)

    async def first() -> RuntimeEvent:
        return await anext(aiter(target.runtime.events()))

    listening, own = asyncio.create_task(listen()), asyncio.create_task(first())
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not own.done():
                await running(target, ["true"])
                await asyncio.wait({own}, timeout=0.5)
            own.result()
            assert not listening.done(), "the stranger listens still"
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    assert heard == []


@pytest.mark.parametrize("target", [PODMAN, OWN_PODMAN], indirect=True)
async def test_events_of_pods_are_not_told(target: PodmanTarget, podman_service: PodmanService) -> None:
    """Podman 6 writes a pod's labels to them: each would cost an inspect of a container that does not exist."""
    heard: list[str] = []
    ended = asyncio.Event()

    async def listen() -> None:
        async for event in target.runtime.events():
            heard.append(event.container_id)
            if event.action == "died":
                ended.set()

    listening = asyncio.create_task(listen())
    with contextlib.closing(Libpod(podman_service.socket)) as libpod:
        try:
            async with asyncio.timeout(DEADLINE_S):
                pod, pods = {"labels": {labels.INSTANCE: target.instance}}, set()
                while not ended.is_set():  # Until the stream is open, what happens is not told.
                    made = await asyncio.to_thread(libpod.call, "POST", "pods/create", pod)
                    pods.add(made["Id"])
                    for verb in ("start", "restart", "stop"):
                        await asyncio.to_thread(libpod.call, "POST", f"pods/{made['Id']}/{verb}?t=0")
                    await asyncio.wait({asyncio.create_task(ended.wait())}, timeout=1.0)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
    assert heard
    assert pods.isdisjoint(heard)


def events_in_a_file(directory: Path) -> Path:
    """The user's containers.conf, but for where events go: by default systemd's journal where there is one."""
    conf = read_conf(os.environ)
    conf["engine"]["events_logger"] = "file"
    made = directory / "events.conf"
    made.write_text(tomli_w.dumps(conf))
    return made


def reads_log(pid: int) -> bool:
    """Whether that service reads its file of events, as it does for a client that has a stream open.

    What it has open for writing does not count: Podman 5 leaves that to Go's garbage collector.
    """
    return any(map(is_log_to_read, Path(f"/proc/{pid}/fd").iterdir()))


def is_log_to_read(entry: Path) -> bool:
    """Whether that entry of a process's ``fd`` is a file of events, open for reading."""
    with contextlib.suppress(OSError):  # closed meanwhile
        info = entry.parent.with_name("fdinfo").joinpath(entry.name).read_text()
        flags = int(info.partition("flags:")[2].split()[0], 8)
        return flags & os.O_ACCMODE == os.O_RDONLY and os.readlink(entry).endswith(f"/{NAME}")
    return False


@pytest.mark.podman
async def test_our_own_service_reads_no_events_for_us(
    tmp_path: Path, podman_service: PodmanService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first moment: then they are read from the file, and hints still come."""
    monkeypatch.setenv("CONTAINERS_CONF", str(events_in_a_file(tmp_path)))
    with running_service(tmp_path) as socket:
        target = PodmanTarget(PodmanService(socket, f"{podman_service.run_name}-own"), is_own_service=True)
        connection = Connection(str(socket))
        pid = connection.service_pid
        connection.close()
        listening = asyncio.create_task(tells_of_an_end(target, lambda: not reads_log(pid)))
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not listening.done():
                    await running(target, ["true"])
                    await asyncio.wait({listening}, timeout=1.0)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await target.clean()


async def tells_of_an_end(target: Target, is_so: Callable[[], bool]) -> None:
    """Until an end was told while that was so."""
    async for event in target.runtime.events():
        if event.action == "died" and is_so():
            return
