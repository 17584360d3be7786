"""Logging of every process of the agent: lines on stderr, as text or as JSON. What reads stderr keeps them."""

from __future__ import annotations

import logging
import sys
from typing import Final

import msgspec

from ipc.host.clock import rfc3339_micro
from ipc.text.safe_text import safe_text

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("text", "json")
CHATTY_LIBRARIES: Final = ("urllib3", "asyncio")
"""Loggers of libraries whose info and debug lines are of no use."""


def set_up(level: str, format: str, process: str) -> None:
    """Send everything from ``level`` up to stderr; ``process`` says whose line it is, e.g. ``pods-0``.

    Replaces what an earlier call (or a parent, before the fork) has set up. Raises ValueError for an unknown level or
    format.
    """
    if level not in LEVELS or format not in FORMATS:
        raise ValueError(f"log level {level!r} and format {format!r} must be of {LEVELS} and {FORMATS}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TextFormatter(process) if format == "text" else JsonFormatter(process))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for chatty in CHATTY_LIBRARIES:
        logging.getLogger(chatty).setLevel(logging.WARNING)


class TextFormatter(logging.Formatter):
    """``2026-01-01T00:00:00.000000Z INFO pods-0: message``, and a traceback below it."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line = f"{rfc3339_micro(record.created)} {record.levelname} {self._process}: {record.getMessage()}"
        text = f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
        return safe_text(text)


class JsonFormatter(logging.Formatter):
    """One object per line: ts, level, process, logger, msg, and exception when there is one."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": rfc3339_micro(record.created),
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode({key: safe_text(text) for key, text in line.items()}).decode()
