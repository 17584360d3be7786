"""The journal's native protocol, as a socket in its place receives it."""

from __future__ import annotations

import array
import logging
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.host.log import entry
from ipc.host.log.journal import JournalHandler, is_journal_stream
from ipc.host.log.setup import LogTarget, set_up


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "journal"))
        made.settimeout(10)
        yield made


class Kept(logging.Handler):
    """Keeps what was handed to it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def fallback() -> Kept:
    return Kept()


@pytest.fixture
def handler(journal: socket.socket, fallback: Kept) -> Iterator[JournalHandler]:
    made = JournalHandler("node-1", fallback, Path(journal.getsockname()))
    yield made
    made.close()


def record(message: str, level: int = logging.INFO, **attributes: object) -> logging.LogRecord:
    made = logging.LogRecord("workers.pleg.observer", level, "/src/pleg/observer.py", 7, message, (), None, "observe")
    made.__dict__.update(attributes)
    return made


def received(journal: socket.socket) -> dict[str, str]:
    """Fields of the next datagram, or of the sealed memory that comes with it."""
    size = array.array("i").itemsize
    data, ancillary, _, _ = journal.recvmsg(1 << 20, socket.CMSG_SPACE(size))
    if ancillary:
        assert data == b""
        (descriptor,) = struct.unpack("i", ancillary[0][2])
        with os.fdopen(descriptor, "rb") as memory:
            data = os.pread(memory.fileno(), 1 << 24, 0)
            with pytest.raises(PermissionError):
                os.pwrite(memory.fileno(), b"x", 0)
    return fields(data)


def fields(data: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, has_value, value = line.partition(b"=")
        if not has_value:
            (length,) = struct.unpack("<Q", data[:8])
            value, data = data[8 : 8 + length], data[9 + length :]
        found[name.decode()] = value.decode()
    return found


def test_a_line_has_its_fields(handler: JournalHandler, journal: socket.socket) -> None:
    subject = entry.Subject(namespace="default", name="web", uid="u", container="httpd")
    handler.handle(record("it ended", **entry.line_about(subject), **entry.line_with(resp=200)))
    assert received(journal) == {
        "MESSAGE": "it ended",
        "PRIORITY": "6",
        "SYSLOG_IDENTIFIER": "rootlet",
        "CODE_FILE": "/src/pleg/observer.py",
        "CODE_LINE": "7",
        "CODE_FUNC": "observe",
        "ROOTLET_PROCESS": "node-1",
        "ROOTLET_LOGGER": "workers.pleg.observer",
        "ROOTLET_POD_NAMESPACE": "default",
        "ROOTLET_POD_NAME": "web",
        "ROOTLET_POD_UID": "u",
        "ROOTLET_CONTAINER_NAME": "httpd",
        "ROOTLET_RESP": "200",
    }


@pytest.mark.parametrize(
    ("level", "priority"),
    [(logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (logging.DEBUG, 7)],
)
def test_the_priority_is_that_of_the_level(
    handler: JournalHandler, journal: socket.socket, level: int, priority: int
) -> None:
    handler.handle(record("x", level))
    assert received(journal)["PRIORITY"] == str(priority)


def test_a_message_cannot_forge_a_field(handler: JournalHandler, journal: socket.socket) -> None:
    handler.handle(record("a\nPRIORITY=0\nMESSAGE=b"))
    found = received(journal)
    assert (found["MESSAGE"], found["PRIORITY"]) == ("a\nPRIORITY=0\nMESSAGE=b", "6")


def test_a_line_too_large_for_a_datagram_comes_in_sealed_memory(journal: socket.socket, fallback: Kept) -> None:
    handler = JournalHandler("p", fallback, Path(journal.getsockname()))
    handler._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # the least; by default some 200 KiB
    text = "x" * 60_000
    handler.handle(record(text))
    handler.close()
    assert (received(journal)["MESSAGE"], fallback.records) == (text, [])


def test_without_a_journal_lines_go_to_the_fallback(
    handler: JournalHandler, journal: socket.socket, fallback: Kept
) -> None:
    os.unlink(journal.getsockname())
    handler.handle(record("kept"))
    assert [each.getMessage() for each in fallback.records] == ["kept"]


def test_a_journal_that_reads_nothing_holds_nobody_up(
    handler: JournalHandler, journal: socket.socket, fallback: Kept
) -> None:
    for number in range(10_000):
        handler.handle(record(str(number)))
        if fallback.records:
            break
    assert fallback.records, "its queue is never full"
    assert received(journal)["MESSAGE"] == "0"


def test_a_journal_that_was_started_again_is_found(handler: JournalHandler, journal: socket.socket) -> None:
    path = journal.getsockname()
    os.unlink(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as successor:
        successor.bind(path)
        successor.settimeout(10)
        handler.handle(record("x"))
        assert received(successor)["MESSAGE"] == "x"


def test_stderr_is_the_journals_stream_when_systemd_says_so(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream:
        status = os.fstat(stream.fileno())
        ours = f"{status.st_dev}:{status.st_ino}"
        assert is_journal_stream(stream, {"JOURNAL_STREAM": ours})
        assert not is_journal_stream(stream, {"JOURNAL_STREAM": f"{ours}0"})
        assert not is_journal_stream(stream, {})


@pytest.mark.parametrize(
    ("destination", "is_stream", "is_journal"),
    [("auto", True, True), ("auto", False, False), ("stderr", True, False), ("journal", False, True)],
)
def test_the_destination(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, destination: str, is_stream: bool, is_journal: bool
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    with (tmp_path / "stderr").open("w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        status = os.fstat(stderr.fileno())
        environ = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"} if is_stream else {}
        set_up(LogTarget(destination=destination), "p", environ)
        assert [isinstance(handler, JournalHandler) for handler in root.handlers] == [is_journal]
        for handler in root.handlers:
            handler.close()
