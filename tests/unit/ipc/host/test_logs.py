"""Log lines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator

import pytest

from ipc.host import logs


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def failure() -> tuple[type[BaseException], BaseException, object]:
    try:
        raise ZeroDivisionError("why")
    except ZeroDivisionError:
        return sys.exc_info()  # type: ignore[return-value]


def record(**fields: object) -> logging.LogRecord:
    made = logging.LogRecord("a.logger", logging.WARNING, "file", 1, "%s left", ("two",), None)
    made.created = 1_767_225_600.25
    made.__dict__.update(fields)
    return made


def test_text() -> None:
    line = logs.TextFormatter("pods-3").format(record())
    assert line == "2026-01-01T00:00:00.250000Z WARNING pods-3: two left"
    with_reason = logs.TextFormatter("pods-3").format(record(exc_info=failure()))
    assert with_reason.startswith(f"{line}\nTraceback")
    assert with_reason.endswith("ZeroDivisionError: why")


def test_json_is_one_line() -> None:
    line = logs.JsonFormatter("pods-3").format(record(exc_info=failure()))
    assert "\n" not in line
    data = json.loads(line)
    assert data.pop("exception").endswith("ZeroDivisionError: why")
    assert data == {
        "ts": "2026-01-01T00:00:00.250000Z",
        "level": "warning",
        "process": "pods-3",
        "logger": "a.logger",
        "msg": "two left",
    }


def test_set_up_replaces_what_the_parent_had(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info", "text", "parent")
    logs.set_up("warning", "text", "child")
    logging.getLogger("x").info("quiet")
    logging.getLogger("x").warning("loud")
    assert [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()] == ["WARNING child: loud"]


@pytest.mark.parametrize(("level", "format"), [("loud", "text"), ("info", "xml")])
def test_an_unknown_choice_is_refused(level: str, format: str) -> None:
    with pytest.raises(ValueError, match="must be of"):
        logs.set_up(level, format, "p")
