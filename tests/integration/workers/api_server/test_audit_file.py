"""The file of the audit log: its rotation, and a disk that refuses, or does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import ClientSession, UnixConnector, web

from ipc.host.clock import SystemClock
from tests.support.hung_file_system import hung, is_there
from workers.api_server import audit
from workers.api_server.audit import MAX_FILES, Audit, note_answer
from workers.fs.fs_executor import FsExecutor


@pytest.fixture
def files() -> Iterator[FsExecutor]:
    with contextlib.closing(FsExecutor()) as made:
        yield made


async def test_a_full_file_makes_room_and_the_oldest_goes(
    tmp_path: Path, files: FsExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_BYTES", 100)
    log = Audit(tmp_path / "audit.log", SystemClock(), files)
    for number in range(20):
        await log.write({"number": number, "result": "x" * 50})
    names = sorted(os.listdir(tmp_path))
    assert names == ["audit.log", *(f"audit.log.{number}" for number in range(1, MAX_FILES))]
    newest = msgspec.json.decode((tmp_path / "audit.log").read_bytes().splitlines()[-1])
    assert newest["number"] == 19


async def test_a_line_is_bounded_and_a_disk_that_refuses_is_told_once(
    tmp_path: Path, files: FsExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    log = Audit(tmp_path / "absent" / "audit.log", SystemClock(), files)
    for _ in range(3):
        await log.write({"result": "x"})
    assert len(caplog.records) == 1
    (tmp_path / "absent").mkdir()
    await log.write({"result": "x" * 5000 + "\n"})
    text = (tmp_path / "absent" / "audit.log").read_text()
    assert len(text) < 1000
    assert text.count("\n") == 1


@pytest.mark.skipif(not is_there(), reason="no fusermount3, or /dev/fuse is not for us")
async def test_a_disk_that_does_not_answer_keeps_nobody_waiting_and_gets_the_lines_afterwards(
    tmp_path: Path, files: FsExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    log = Audit(tmp_path / "audit.log", SystemClock(), files)
    with hung(tmp_path):
        for number in range(3):
            await log.write({"number": number})
        assert not files.is_idle(tmp_path / "audit.log"), "one call hangs, and no other was made"
    assert [record.message for record in caplog.records] == [
        f"changes are not recorded in {tmp_path}/audit.log: timed out waiting for the file system"
    ]
    await files.run(tmp_path / "audit.log", int)  # behind the call that has hung
    await log.write({"number": 3})
    lines = (tmp_path / "audit.log").read_bytes().splitlines()
    assert [msgspec.json.decode(line)["number"] for line in lines] == [1, 2, 3]


async def test_a_session_whose_client_closes_first_is_one_that_has_begun(tmp_path: Path, files: FsExecutor) -> None:
    log, path, left = Audit(tmp_path / "audit.log", SystemClock(), files), str(tmp_path / "socket"), asyncio.Event()

    async def session(request: web.Request) -> web.WebSocketResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return response

    app = web.Application(middlewares=[log.middleware])
    app.on_response_prepare.append(note_answer)
    app.router.add_get("/api/v1/namespaces/default/pods/web/exec", session)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    await web.UnixSite(runner, path).start()
    async with ClientSession(connector=UnixConnector(path)) as client:
        entered = await client.ws_connect("http://agent/api/v1/namespaces/default/pods/web/exec")
        connection = entered._response.connection
        assert connection is not None
        assert connection.transport is not None
        connection.transport.abort()
        async with asyncio.timeout(20):
            await left.wait()
    await runner.cleanup()
    (line,) = map(msgspec.json.decode, (tmp_path / "audit.log").read_bytes().splitlines())
    assert (line["verb"], line["code"], line["result"]) == ("exec", 101, "Switching Protocols")
