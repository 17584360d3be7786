"""Lines for stderr: as text for people, or as JSON with the kubelet's names for log collectors. Pure."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ipc.host.clock import rfc3339_micro
from ipc.host.log.entry import Entry, entry_of

DEBUG_V: Final = 4
"""Verbosity of a debug line, and the number from which on debug lines are wanted (Kubernetes' logging conventions: 4 is
debug); that of the others is 0, and an error has none."""


def as_text(entry: Entry) -> str:
    """``2026-01-01T00:00:00.000000Z INFO pods-0: message``, fields as klog writes them, and a traceback below it."""
    level = logging.getLevelName(entry.level)
    fields = "".join(f" {key}={_quoted(value)}" for key, value in entry.fields.items())
    below = f"\n{entry.traceback}" if entry.traceback else ""
    return f"{rfc3339_micro(entry.at)} {level} {entry.process}: {entry.message}{fields}{below}"


def _quoted(value: str | int | float) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def as_json(entry: Entry) -> str:
    """One object on one line (component-base/logs/json/json.go): ts in milliseconds, caller, msg, v or err, and what
    the line is about. ``level`` and ``process`` are ours, ``logger`` and ``stacktrace`` zap's."""
    subject = entry.subject
    line: dict[str, Any] = {
        "ts": round(entry.at * 1000, 3),
        "level": logging.getLevelName(entry.level).lower(),
        "process": entry.process,
        "logger": entry.logger,
        "caller": entry.caller,
        "msg": entry.message,
    }
    if entry.level < logging.ERROR:
        line["v"] = DEBUG_V if entry.level < logging.INFO else 0
    if subject.name:
        line["pod"] = {"name": subject.name, "namespace": subject.namespace}
    optional = (
        ("podUID", subject.uid),
        ("containerName", subject.container),
        ("err", entry.error),
        ("stacktrace", entry.traceback),
    )
    line.update((key, text) for key, text in optional if text)
    if entry.duration_s is not None:
        line["duration"] = round(entry.duration_s, 6)
    if entry.slot is not None:
        line["slot"] = entry.slot
    for key, value in entry.fields.items():
        line.setdefault(key, value)
    return msgspec.json.encode(line).decode()


FORMATS: Final[Mapping[str, Callable[[Entry], str]]] = {"text": as_text, "json": as_json}


class EntryFormatter(logging.Formatter):
    """A format as `logging` wants it; ``process`` is the name of the process whose lines they are."""

    def __init__(self, process: str, render: Callable[[Entry], str]) -> None:
        super().__init__()
        self._process = process
        self._render = render

    def format(self, record: logging.LogRecord) -> str:
        return self._render(entry_of(record, self._process))
