"""Lines on stderr, as text and as JSON."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from ipc.host.log import entry, setup, verbosity
from ipc.host.log.formats import EntryFormatter, as_json, as_text
from ipc.host.log.setup import LogTarget
from ipc.host.log.verbosity import Verbosity

AT = 1_767_225_600.25


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    root.handlers[:] = []
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]


def failure() -> tuple[type[BaseException], BaseException, object]:
    try:
        raise ZeroDivisionError("why")
    except ZeroDivisionError:
        return sys.exc_info()  # type: ignore[return-value]


def record(*, level: int = logging.WARNING, **attributes: object) -> logging.LogRecord:
    made = logging.LogRecord("workers.pleg.a", level, "/src/workers/pleg/a.py", 7, "%s left", ("two",), None)
    made.created = AT
    made.__dict__.update(attributes)
    return made


def text(made: logging.LogRecord) -> str:
    return EntryFormatter("pods-3", as_text).format(made)


def data(made: logging.LogRecord) -> dict[str, Any]:
    line = EntryFormatter("pods-3", as_json).format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_text() -> None:
    line = text(record())
    assert line == "2026-01-01T00:00:00.250000Z WARNING pods-3: two left"
    with_reason = text(record(exc_info=failure()))
    assert with_reason.startswith(f"{line}\nTraceback")
    assert with_reason.endswith("ZeroDivisionError: why")


def test_text_has_fields_as_klog_writes_them() -> None:
    extra = entry.line_with(verb="GET", URI='/a "b"', resp=200)
    assert text(record(**extra)).endswith(' two left verb="GET" URI="/a \\"b\\"" resp=200')


def test_duration_and_slot_are_for_programs() -> None:
    measured = record(**entry.line_about(duration_s=0.25, slot=0))
    assert (data(measured)["duration"], data(measured)["slot"]) == (0.25, 0)
    assert text(measured) == text(record())
    assert not {"duration", "slot"} & data(record(**entry.line_about(entry.Subject(name="web")))).keys()


def test_json_has_the_kubelets_names() -> None:
    assert data(record()) == {
        "ts": AT * 1000,
        "level": "warning",
        "process": "pods-3",
        "logger": "workers.pleg.a",
        "caller": "pleg/a.py:7",
        "msg": "two left",
        "v": 0,
    }


@pytest.mark.parametrize(
    ("level", "v"), [(logging.DEBUG, 4), (logging.INFO, 0), (logging.WARNING, 0), (logging.ERROR, None)]
)
def test_v_is_that_of_the_level_and_an_error_has_none(level: int, v: int | None) -> None:
    assert data(record(level=level)).get("v") == v


def test_json_of_an_exception() -> None:
    found = data(record(exc_info=failure()))
    assert found["err"] == "ZeroDivisionError: why"
    assert found["stacktrace"].startswith("Traceback")


def test_json_names_the_pod() -> None:
    about = entry.Subject(namespace="default", name="web", uid="u-1", container="httpd")
    found = data(record(**entry.line_about(about)))
    assert found["pod"] == {"name": "web", "namespace": "default"}
    assert (found["podUID"], found["containerName"]) == ("u-1", "httpd")


def test_a_field_does_not_replace_what_every_line_has() -> None:
    found = data(record(**entry.line_with(msg="forged", resp=404)))
    assert (found["msg"], found["resp"]) == ("two left", 404)


async def test_a_task_s_lines_are_about_its_pod() -> None:
    import asyncio

    async def of(name: str) -> dict[str, Any]:
        entry.about(entry.Subject(namespace="ns", name=name, uid=f"u-{name}"))
        await asyncio.sleep(0)
        return data(record())

    found = await asyncio.gather(asyncio.create_task(of("a")), asyncio.create_task(of("b")))
    assert [line["podUID"] for line in found] == ["u-a", "u-b"]
    assert "podUID" not in data(record())


@pytest.mark.parametrize("render", [as_text, as_json])
def test_hostile_text_is_escaped_and_bounded(render: Any) -> None:
    hostile = "\x1b[2J\u202e\ud800" + "x" * 1_000_000
    made = record(args=(hostile,), **entry.line_with(URI=hostile), **entry.line_about(entry.Subject(uid=hostile)))
    line = EntryFormatter("p", render).format(made)
    assert not set(line) & {"\x1b", "\u202e", "\ud800"}
    assert len(line) < entry.MAX_MESSAGE_BYTES + 4 * entry.MAX_FIELD_BYTES


def test_a_line_of_a_field_cannot_begin_another_one() -> None:
    line = text(record(**entry.line_with(URI="a\n2026 ERROR master: forged")))
    assert "\n" not in line


def test_set_up_replaces_what_the_parent_had(capsys: pytest.CaptureFixture[str]) -> None:
    setup.set_up(LogTarget(), "parent", {})
    setup.set_up(LogTarget(), "child", {})
    verbosity.apply(Verbosity("warning"))
    logging.getLogger("x").info("quiet")
    logging.getLogger("x").warning("loud")
    assert [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()] == ["WARNING child: loud"]


@pytest.mark.parametrize("target", [LogTarget(format="xml"), LogTarget(destination="printer")])
def test_an_unknown_choice_is_refused(target: LogTarget) -> None:
    with pytest.raises(ValueError, match="must be of"):
        setup.set_up(target, "p", {})
