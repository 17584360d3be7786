"""Adapters of the groups about container logs."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, wall
from tests.support.shown_log import shown_log
from workers.api_server.handlers.log_files import LogOptions
from workers.logs.cri_format import LogRenderer, parse_entry
from workers.logs.log_reader import tail_offset
from workers.logs.rotate import compress_older, rotate
from workers.logs.rotated_names import split_excess, split_unused

_LOG: Final = "0.log"
_ROTATED_AT: Final = 1_763_665_431.0


def _log_parse_line(case: Json) -> Result:
    if case["line"].startswith("{"):
        raise Later("never: Podman writes no json-file of Docker's")
    found, expected = parse_entry(case["line"].encode().removesuffix(b"\n")), case["expected"]
    if case["expect_err"] or found is None:
        return case["expect_err"], found is None
    text = found.message.decode() + ("" if found.partial else "\n")
    return (wall(expected["timestamp"]), expected["log"]), (wall(found.timestamp.decode()), text)


def _log_read(case: Json) -> Result:
    options = case["opts"]
    given = LogOptions(
        follow=options["follow"],
        timestamps=options["timestamps"],
        tail_lines=options["tail_lines"],
        since=wall(options["since"]),
        limit_bytes=options["limit_bytes"],
    )
    return case["expected_stdout"], _shown(_cri(case["content"]), given).decode()


def _cri(content: str) -> str:
    """The same log as Podman writes it, of Docker's json-file."""
    entries = (json.loads(line) if line.startswith("{") else line for line in content.splitlines())
    return "".join(
        f"{entry}\n"
        if isinstance(entry, str)
        else _entry({"timestamp": entry["time"], "stream": entry["stream"], "log": entry["log"]}).decode() + "\n"
        for entry in entries
    )


def _log_write(case: Json) -> Result:
    """Here both streams go one way, as the API has them."""
    options, messages = case["opts"], case["messages"]
    if len({message["stream"] for message in messages}) > 1 or len(case["streams"]) < 2:
        raise Later("never: a client of the API gets both streams as one")
    renderer = LogRenderer(
        timestamps=options["timestamps"], since=wall(options["since"]), limit_bytes=options["limit_bytes"]
    )
    expected = (case["expected_stdout"] or "") + (case["expected_stderr"] or "")
    return expected, b"".join(renderer.render([_entry(message)]) for message in messages).decode()


def _entry(message: Mapping[str, Any]) -> bytes:
    tag = "F" if message["log"].endswith("\n") else "P"
    return f"{message['timestamp']} {message['stream']} {tag} {message['log'].removesuffix(chr(10))}".encode()


def _log_tail_start(case: Json) -> Result:
    """Different on purpose is nothing: an incomplete last line does not count."""
    line, rest = "a" * case["line_length"] + "\n", "a" * case["rest_length"]
    with tempfile.TemporaryFile() as file:
        file.write((line * case["full_lines"] + rest).encode())
        file.flush()
        return case["expected"], tail_offset(file.fileno(), case["n"])


def _log_read_partial(case: Json) -> Result:
    block = "".join(case["partial_format"].replace("{i}", str(i)) for i in range(case["repeat"])) + case["end_line"]
    shown = _shown(block * case["blocks"], LogOptions(timestamps=case["timestamps"])).decode().splitlines()
    wrong = [line for line in shown if not line.endswith(case["expected_each"]) or not wall(line.split(" ", 1)[0])]
    return (case["expected_lines"], []), (len(shown), wrong)


def _log_filter_unused(case: Json) -> Result:
    return (case["expected_in_use"], case["expected_unused"]), split_unused(case["logs"])


def _log_remove_excess(case: Json) -> Result:
    return case["expected"], split_excess(case["logs"], case["max_files"])[0]


class _GoneOver:
    """A monitor whose new log is not made, as that of the table's runtime."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def has_unread(self) -> bool:
        return False

    def reopen_log(self) -> None:
        self._log.with_name(f"{self._log.name}.tmp").rename(self._log)
        self._log.unlink()


@contextlib.contextmanager
def _gone_over(log: Path) -> Iterator[_GoneOver]:
    yield _GoneOver(log)


def _log_rotate_scenario(case: Json) -> Result:
    if case["reopen_fails"]:
        raise Later("never: a log has its name until its monitor has made the next one")
    with tempfile.TemporaryDirectory() as directory:
        for name, size in case["files"].items():
            (Path(directory) / name).write_bytes(b"x" * size)
        for container in case["containers"]:
            log = Path(directory) / container["log"]
            if container["state"] == "RUNNING" and log.stat().st_size >= case["max_size_bytes"]:
                control = functools.partial(_gone_over, log)
                rotate(log, case["max_files"], _ROTATED_AT, control, None)
                compress_older(log, lambda: True)
        stamp = f"{datetime.datetime.fromtimestamp(_ROTATED_AT):%Y%m%d-%H%M%S}"
        found = sorted(name.replace(stamp, "{T}") for name in os.listdir(directory))
    return (case["expected_files"], case["expected_error"]), (found, False)


def _shown(content: str, options: LogOptions) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory, _LOG)
        log.write_text(content)
        return asyncio.run(shown_log(log, options))


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "log_filter_unused": _log_filter_unused,
    "log_remove_excess": _log_remove_excess,
    "log_rotate_scenario": _log_rotate_scenario,
    "log_parse_line": _log_parse_line,
    "log_read": _log_read,
    "log_write": _log_write,
    "log_tail_start": _log_tail_start,
    "log_read_partial": _log_read_partial,
}
