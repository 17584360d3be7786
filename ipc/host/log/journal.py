"""The journal's native protocol: one datagram a line, a sealed memfd for one that is too large for a datagram.

https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TextIO

from ipc.host.log.entry import Entry, entry_of

JOURNAL_SOCKET: Final = Path("/run/systemd/journal/socket")
IDENTIFIER: Final = "rootlet"
"""SYSLOG_IDENTIFIER: ``journalctl -t rootlet``."""

_PRIORITIES: Final = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
"""Priorities of syslog(3), from the highest level down."""
_DEBUG_PRIORITY: Final = 7
_LENGTH: Final = struct.Struct("<Q")
_DESCRIPTOR: Final = struct.Struct("=i")
_TOO_LARGE: Final = frozenset({errno.EMSGSIZE, errno.ENOBUFS})
_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL


def is_journal_stream(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether that is the stream to the journal which systemd has opened (systemd.exec(5), JOURNAL_STREAM)."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:
        return False
    return environ.get("JOURNAL_STREAM", "") == f"{status.st_dev}:{status.st_ino}"


def as_datagram(entry: Entry) -> bytes:
    """The fields of a line as the journal takes them. Pure."""
    return b"".join(_encoded(name, text.encode()) for name, text in _fields(entry) if text)


def _fields(entry: Entry) -> Iterator[tuple[str, str]]:
    subject = entry.subject
    yield "MESSAGE", f"{entry.message}\n{entry.traceback}" if entry.traceback else entry.message
    yield "PRIORITY", str(priority(entry.level))
    yield "SYSLOG_IDENTIFIER", IDENTIFIER
    yield "MESSAGE_ID", entry.message_id
    yield "CODE_FILE", entry.file
    yield "CODE_LINE", str(entry.line)
    yield "CODE_FUNC", entry.function
    yield "ROOTLET_PROCESS", entry.process
    yield "ROOTLET_LOGGER", entry.logger
    yield "ROOTLET_ERROR", entry.error
    yield "ROOTLET_POD_NAMESPACE", subject.namespace
    yield "ROOTLET_POD_NAME", subject.name
    yield "ROOTLET_POD_UID", subject.uid
    yield "ROOTLET_CONTAINER_NAME", subject.container
    yield "ROOTLET_DURATION", "" if entry.duration_s is None else f"{entry.duration_s:.6f}"
    yield "ROOTLET_SLOT", "" if entry.slot is None else str(entry.slot)
    for key, value in entry.fields.items():
        yield f"ROOTLET_{key.upper()}", str(value)


def priority(level: int) -> int:
    """Syslog's priority of a level of `logging`."""
    return next((number for least, number in _PRIORITIES if level >= least), _DEBUG_PRIORITY)


def _encoded(name: str, value: bytes) -> bytes:
    if b"\n" in value:
        return b"".join((name.encode(), b"\n", _LENGTH.pack(len(value)), value, b"\n"))
    return b"".join((name.encode(), b"=", value, b"\n"))


class JournalHandler(logging.Handler):
    """Sends each line to the journal. A line that the journal does not take, because it is gone or its queue is full,
    goes to ``fallback``: nothing waits for the journal here."""

    def __init__(self, process: str, fallback: logging.Handler, address: Path = JOURNAL_SOCKET) -> None:
        super().__init__()
        self._process = process
        self._fallback = fallback
        self._address = str(address)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(as_datagram(entry_of(record, self._process)))
        except OSError:
            self._fallback.handle(record)
        except Exception:
            self.handleError(record)

    def _send(self, datagram: bytes) -> None:
        """Raises OSError."""
        try:
            self._socket.sendto(datagram, self._address)
        except OSError as error:
            if error.errno not in _TOO_LARGE:
                raise
            self._send_in_memory(datagram)

    def _send_in_memory(self, datagram: bytes) -> None:
        """Raises OSError."""
        descriptor = os.memfd_create("rootlet-log", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        with open(descriptor, "wb", buffering=0) as memory:
            memory.write(datagram)
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, _SEALS)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, _DESCRIPTOR.pack(descriptor))
            self._socket.sendmsg([b""], [rights], 0, self._address)  # send_fds drops the address

    def close(self) -> None:
        self._socket.close()
        super().close()
