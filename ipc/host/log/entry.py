"""One line of the log, bounded and fit to be read: the one place that takes a record apart."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

import msgspec

from ipc.host.text.safe_text import safe_line, safe_text

MAX_MESSAGE_BYTES: Final = 64 * 1024
"""Longest message, and longest traceback, in bytes of UTF-8."""
MAX_FIELD_BYTES: Final = 1024
"""Longest text of any other field, in bytes of UTF-8."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The pod, and the container of it, that a line is about; empty texts are unknown."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    container: str = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line. Its texts have no control characters; message and traceback may have several lines."""

    at: float
    """Epoch seconds."""
    level: int
    """As `logging` has it."""
    process: str
    """Name of the process, such as ``pods-4``."""
    logger: str
    message: str
    directory: str
    """Name of the directory of the source file."""
    file: str
    """Path of the source file."""
    line: int
    function: str
    error: str = ""
    traceback: str = ""
    subject: Subject
    message_id: str = ""
    """Kind of the line (`supervisor.control.message_ids`)."""
    fields: Mapping[str, str | int | float] = {}
    """Further values, by the kubelet's names where it has them."""
    duration_s: float | None = None
    """How long what the line tells of took, where that was measured."""
    slot: int | None = None
    """Slot of the worker that the line is about, or that did what it tells of."""

    @property
    def caller(self) -> str:
        """``pleg/observer.py:123``, as zap's ShortCallerEncoder has it."""
        return f"{self.directory}/{os.path.basename(self.file)}:{self.line}"


NOBODY: Final = Subject()
_SUBJECT: Final[ContextVar[Subject]] = ContextVar("subject of log lines", default=NOBODY)


def about(subject: Subject) -> None:
    """Have this task, and those that it makes, log from now on about that pod."""
    _SUBJECT.set(subject)


def line_about(
    subject: Subject = NOBODY, *, duration_s: float | None = None, slot: int | None = None
) -> dict[str, Any]:
    """The ``extra`` of a single line about that pod and that slot, with the time that it took. For programs: a line for
    people has these in its words where they matter."""
    measured = {"duration_s": duration_s, "slot": slot}
    return measured if subject is NOBODY else {"subject": subject, **measured}


def line_with(**fields: str | int | float) -> dict[str, Any]:
    """The ``extra`` of a line with further fields."""
    return {"fields": fields}


def entry_of(record: logging.LogRecord, process: str) -> Entry:
    """The line that a record asks for. Linear in its texts, which nobody has to trust."""
    error = record.exc_info[1] if record.exc_info else None
    return Entry(
        at=record.created,
        level=record.levelno,
        process=process,
        logger=record.name,
        message=safe_text(record.getMessage(), MAX_MESSAGE_BYTES),
        directory=os.path.basename(os.path.dirname(record.pathname)),
        file=safe_line(record.pathname, MAX_FIELD_BYTES),
        line=record.lineno,
        function=record.funcName or "",
        error="" if error is None else safe_line(f"{type(error).__name__}: {error}", MAX_FIELD_BYTES),
        traceback="" if error is None else safe_text(_traceback(error), MAX_MESSAGE_BYTES),
        subject=_bounded(getattr(record, "subject", None) or _SUBJECT.get()),
        message_id=getattr(record, "message_id", ""),
        duration_s=getattr(record, "duration_s", None),
        slot=getattr(record, "slot", None),
        fields={key: _field(value) for key, value in getattr(record, "fields", {}).items()},
    )


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip("\n")


def _field(value: object) -> str | int | float:
    return value if isinstance(value, int | float) else safe_line(str(value), MAX_FIELD_BYTES)


def _bounded(subject: Subject) -> Subject:
    if subject is NOBODY:
        return subject
    texts = msgspec.structs.asdict(subject).items()
    return Subject(**{key: safe_line(text, MAX_FIELD_BYTES) for key, text in texts})
