"""Podman's file of events, written as Podman writes it, and a process that has it open as its service has."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ipc.host.clock import wall
from ipc.host.text.lines import MAX_LINE_BYTES
from tests.support.api_server import eventually
from tests.support.open_files import open_files, open_files_before
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import RuntimeEvent
from workers.podman_files.event_log import READ_BYTES, EventLog, find_log

DEADLINE_S = 30.0
HOLD = "import sys; file = open(sys.argv[1]); print(flush=True); sys.stdin.read()"


@contextlib.contextmanager
def service(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that reads from that file."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def line(id: str, instance: str = "one", at: float | None = None) -> bytes:
    """As `podman` 4.3.1 and 5.4.2 write it, but for fields that say nothing here."""
    time = datetime.fromtimestamp(wall() if at is None else at, UTC).isoformat()
    event = {"ID": id, "Image": "busybox", "Name": "c", "Status": "start", "Time": time, "Type": "container"}
    return json.dumps({**event, "Attributes": {labels.INSTANCE: instance}}).replace('": ', '":').encode() + b"\n"


def append(file: Path, *lines: bytes) -> None:
    with file.open("ab") as log:
        for each in lines:
            log.write(each)
            log.flush()


class Followed:
    """The events of a file, as they are told."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._service = contextlib.ExitStack()
        self.process = self._service.enter_context(service(file))
        self.log = EventLog(str(file), self.process.pid, "one", wall())
        self._events = self.log.events()

    async def next(self) -> RuntimeEvent:
        async with asyncio.timeout(DEADLINE_S):
            return await anext(self._events)

    async def ids(self, last: str) -> list[str]:
        """Ids of the containers of all events up to the one of that id."""
        found = [""]
        while found[-1] != last:
            found.append((await self.next()).container_id)
        return found[1:]

    async def end(self) -> None:
        await self._events.aclose()  # type: ignore[attr-defined]
        self.log.close()
        self._service.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "events" / "events.log"
    made.parent.mkdir()
    made.write_bytes(line("old", at=wall() - 60))
    return made


@pytest.fixture
async def followed(file: Path) -> AsyncIterator[Followed]:
    made = Followed(file)
    yield made
    await made.end()


async def test_the_file_that_a_process_has_open_is_found(file: Path, tmp_path: Path) -> None:
    with service(file) as holder:
        assert await find_log(holder.pid) == str(file)
    other = tmp_path / "other.log"
    other.touch()
    with service(other) as holder:
        assert await find_log(holder.pid) == ""
    assert await find_log(holder.pid) == "", "it has ended"


async def test_a_file_that_is_another_one_here_is_not_taken(file: Path) -> None:
    """As for a service with a mount namespace of its own."""
    with service(file) as holder:
        os.rename(file, file.with_name("away"))
        append(file, line("another file"))
        assert await find_log(holder.pid) == ""


async def test_events_are_told_as_they_are_written(followed: Followed) -> None:
    before = wall()
    append(followed.file, line("first"))
    event = await followed.next()
    assert (event.action, event.container_id) == ("start", "first")
    assert event.labels[labels.INSTANCE] == "one"
    assert before - 1e-3 <= event.time <= wall()
    append(followed.file, line("second"), line("third"))
    assert await followed.ids("third") == ["second", "third"]


async def test_what_was_written_since_it_was_asked_is_told(file: Path) -> None:
    """Between the request for the stream and the look at the file, which the stream would have told."""
    append(file, line("since", at=wall() + 5))
    followed = Followed(file)
    try:
        assert await followed.ids("since") == ["since"]
    finally:
        await followed.end()


async def test_others_and_garbage_are_passed_over(followed: Followed) -> None:
    key = labels.INSTANCE.encode()
    garbage = [
        b"\n",
        b"{}\n",
        b'{"Status":"start"}\n',
        b"\xff\xfe" + key + b"\n",
        b'{"Status":1,"Attributes":{"' + key + b'":"one"}}\n',
        b'{"Status":"start","Time":"yesterday","Attributes":{"' + key + b'":"one"}}\n',
        b"[" * 10_000 + key + b"\n",
        line("a" * 20)[:-20] + b"\n",
    ]
    append(followed.file, *garbage, line("stranger", instance="two"), line("ours"))
    assert await followed.ids("ours") == ["ours"]


async def test_more_than_is_read_at_a_time_is_read_in_order(followed: Followed) -> None:
    many = 2 * READ_BYTES // len(line("c00000"))
    append(followed.file, b"".join(line(f"c{number:05}") for number in range(many)))
    assert await followed.ids(f"c{many - 1:05}") == [f"c{number:05}" for number in range(many)]


async def test_a_line_may_come_in_two_writes(followed: Followed) -> None:
    whole = line("whole")
    append(followed.file, line("before") + whole[:20])
    assert await followed.ids("before") == ["before"]
    append(followed.file, whole[20:])
    assert await followed.ids("whole") == ["whole"]


async def test_a_file_that_takes_its_place_goes_on_where_it_ended(followed: Followed) -> None:
    """Podman moves the last half of it to another file, and writes what it came to write there."""
    now = wall()
    append(followed.file, *(line(f"c{number}", at=now + 10 * number) for number in range(10)))
    await followed.ids("c9")
    half = followed.file.read_bytes().split(b"\n", 5)[-1]
    other = followed.file.with_name("tmp")
    other.write_bytes(half)
    append(followed.file, line("last before", at=now + 100))
    append(other, line("last before", at=now + 100))
    other.rename(followed.file)
    append(followed.file, line("first after", at=now + 101))
    told = await followed.ids("first after")
    assert "last before" in told
    assert set(told) - {"last before", "c9"} == {"first after"}, "of copies the newest alone are told again"
    append(followed.file, line("later", at=now + 102))
    assert "later" in await followed.ids("later"), "the new file is followed"


async def test_a_file_that_is_cut_goes_on(followed: Followed) -> None:
    """Where its directory cannot be written to, Podman copies the last half back."""
    append(followed.file, line("a"), line("b"))
    await followed.ids("b")
    followed.file.write_bytes(line("c"))
    assert (await followed.ids("c"))[-1] == "c"
    append(followed.file, line("d"))
    assert (await followed.ids("d"))[-1] == "d"


async def test_a_file_that_is_gone_ends_it(followed: Followed) -> None:
    followed.file.unlink()
    with pytest.raises(FileNotFoundError):
        await followed.next()


async def test_the_end_of_the_service_ends_it(followed: Followed) -> None:
    append(followed.file, line("a"))
    await followed.next()
    followed.process.kill()
    with pytest.raises(ConnectionResetError, match="has ended"):
        await followed.next()


async def test_a_line_without_an_end_ends_it(followed: Followed) -> None:
    append(followed.file, b"x" * (MAX_LINE_BYTES + READ_BYTES))
    with pytest.raises(ConnectionResetError):
        await followed.next()


async def test_nothing_is_read_while_nothing_is_written(followed: Followed, monkeypatch: pytest.MonkeyPatch) -> None:
    append(followed.file, line("a"))
    await followed.next()
    waiting = asyncio.ensure_future(followed.next())
    await eventually(lambda: followed.log._is_armed, "the log is watched")
    looks = 0

    def pread(fd: int, size: int, at: int) -> bytes:
        nonlocal looks
        looks += 1
        return b""

    monkeypatch.setattr("workers.podman_files.event_log.os.pread", pread)
    await asyncio.sleep(0.5)
    assert looks == 0
    waiting.cancel()


async def test_only_files_are_read(tmp_path: Path, file: Path) -> None:
    pipe, link = tmp_path / "events.log", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(file)
    with service(file) as holder:
        for path in (pipe, link):
            with pytest.raises(OSError, match=path.name):
                EventLog(str(path), holder.pid, "one", wall())
    with pytest.raises(ProcessLookupError):
        EventLog(str(file), holder.pid, "one", wall())


async def test_nothing_stays_open(file: Path) -> None:
    before = open_files_before()
    followed = Followed(file)
    append(file, line("a"))
    await followed.next()
    await followed.end()
    assert open_files() <= before
