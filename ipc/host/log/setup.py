"""Where a process's lines go, and in which form."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.log.formats import FORMATS, EntryFormatter
from ipc.host.log.journal import JournalHandler, is_journal_stream

DESTINATIONS: Final = ("auto", "stderr", "journal")
CHATTY_LIBRARIES: Final = ("urllib3", "asyncio", "opentelemetry")
"""Loggers of libraries whose info and debug lines are of no use."""


class LogTarget(msgspec.Struct, frozen=True):
    """Form and destination of lines."""

    format: str = "text"
    """Form of lines on stderr; the journal has fields."""
    destination: str = "auto"
    """``auto``: the journal if stderr is a stream to it."""


def set_up(target: LogTarget, process: str, environ: Mapping[str, str] = os.environ) -> None:
    """Have this process log there; ``process`` is its name in each line, e.g. ``pods-0``.

    Replaces what an earlier call (or a parent, before the fork) has set up, but for the levels. Raises ValueError for
    an unknown format or destination.
    """
    if target.format not in FORMATS or target.destination not in DESTINATIONS:
        raise ValueError(f"log {target} must be of {tuple(FORMATS)} and {DESTINATIONS}")
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line has them
    stream: logging.Handler = logging.StreamHandler(sys.stderr)
    stream.setFormatter(EntryFormatter(process, FORMATS[target.format]))
    root = logging.getLogger()
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()
    root.addHandler(JournalHandler(process, stream) if _is_for_journal(target, environ) else stream)
    for chatty in CHATTY_LIBRARIES:
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _is_for_journal(target: LogTarget, environ: Mapping[str, str]) -> bool:
    return target.destination == "journal" or (target.destination == "auto" and is_journal_stream(sys.stderr, environ))
