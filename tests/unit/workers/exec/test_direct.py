"""Readings of a monitor's command line, of a container's own process, and of an OCI runtime's words."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from tests.support.runtime_values import inspected
from workers.exec.child import last_error
from workers.exec.direct import (
    NotDirect,
    Rlimit,
    Target,
    describe,
    find_target,
    is_about_the_command,
    parse_limits,
    runtime_options,
)
from workers.exec.tags import ProcessTag
from workers.proc.rlimit_tag import TAG_LIMIT

MARK = ProcessTag(1, 2, 3)
UNLIMITED = 2**64 - 1
ID = "c" * 64


def wanted(own: dict[str, Any], **limits: Rlimit) -> dict[str, Any]:
    target = Target(
        container_id="c", monitor_pid=0, program="nsenter", argv=("crun",), env={}, process=describe(own, limits)
    )
    made: dict[str, Any] = orjson.loads(target.process_json(["true", "x"], MARK))
    return made


def test_a_process_is_the_containers_own_with_another_command() -> None:
    own = {"args": ["main"], "cwd": "/x", "env": ["A=b"], "user": {"uid": 5, "additionalGids": [7]}, "terminal": True}
    made = wanted(own)
    assert made == {**own, "args": ["true", "x"], "terminal": False, "rlimits": [MARK.rlimit()]}
    assert own["args"] == ["main"]


@pytest.mark.parametrize(
    ("uid", "own", "expected"),
    [
        (0, {"bounding": ["A", "B"], "effective": ["A"]}, "effective=A B permitted=A B inheritable="),
        (5, {"bounding": ["A", "B"]}, "effective= permitted= inheritable= ambient="),
        (5, {"bounding": ["A", "B"], "effective": ["A"]}, "effective=A permitted=A inheritable=A ambient=A"),
    ],
)
def test_capabilities_are_those_of_a_podman_exec(uid: int, own: dict[str, list[str]], expected: str) -> None:
    made = wanted({"user": {"uid": uid}, "capabilities": own})["capabilities"]
    assert made.pop("bounding") == ["A", "B"]
    assert made == {name: words.split() for name, _, words in (part.partition("=") for part in _parts(expected))}


def _parts(text: str) -> list[str]:
    names = ("effective", "permitted", "inheritable", "ambient")
    found = sorted((text.index(name), name) for name in names if name in text)
    ends = [at for at, _ in found[1:]] + [len(text)]
    return [text[at:end].strip() for (at, _), end in zip(found, ends, strict=True)]


def test_a_described_limit_goes_before_an_inherited_one_and_the_mark_before_all() -> None:
    described = [{"type": "RLIMIT_NOFILE", "soft": 1, "hard": 2}, {"type": TAG_LIMIT, "soft": 5, "hard": 5}]
    inherited = {"RLIMIT_NOFILE": Rlimit(8, 9), "RLIMIT_CORE": Rlimit(0, UNLIMITED)}
    made = wanted({"rlimits": described}, **inherited)["rlimits"]
    assert {limit["type"]: (limit["soft"], limit["hard"]) for limit in made} == {
        "RLIMIT_NOFILE": (1, 2),
        "RLIMIT_CORE": (0, UNLIMITED),
        TAG_LIMIT: (MARK.rlimit()["soft"], MARK.rlimit()["hard"]),
    }


def test_a_command_has_more_processes_than_a_container_that_has_all_of_its_own() -> None:
    def most(stated: int, own: int | None) -> int:
        limits = [{"type": "RLIMIT_NPROC", "soft": stated, "hard": stated}]
        (limit,) = orjson.loads(describe({"rlimits": limits}, {}, own))["rlimits"]
        return int(limit["soft"])

    assert most(750, 1000) == 875
    assert most(751, 1000) == 751, "somebody's choice"
    assert most(750, None) == 750


def test_nobody_may_raise_a_hard_limit() -> None:
    theirs = "Max open files            2000                 4000                 files\n"
    ours = "Max open files            100                  3000                 files\n"
    more = "Max realtime timeout      unlimited            unlimited            us\n"
    assert parse_limits(theirs + more, ours + more) == {
        "RLIMIT_NOFILE": Rlimit(2000, 3000),
        "RLIMIT_RTTIME": Rlimit(UNLIMITED, UNLIMITED),
    }


def test_all_rows_of_proc_are_known() -> None:
    with open("/proc/self/limits") as limits:
        text = limits.read()
    assert len(parse_limits(text, text)) == len(text.splitlines()) - 2, "the head, and the mark"


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("conmon -r crun", []),
        ("conmon --runtime-arg --log-format=json --runtime-arg --log --runtime-arg=/o", []),
        ("--runtime-arg --root --runtime-arg=/r --runtime-arg --log-level --runtime-arg debug", ["--root", "/r"]),
        ("--runtime-arg --root=/r --exit-command-arg --root --exit-command-arg /x", ["--root=/r"]),
    ],
)
def test_options_of_the_oci_runtime(words: str, options: list[str]) -> None:
    assert runtime_options(words.split()) == options


@pytest.mark.parametrize(
    ("words", "is_about"),
    [
        ("executable file `/no/such` not found in $PATH: No such file or directory", True),
        ("open executable: Permission denied", True),
        ("exec: Exec format error", True),
        ('exec failed: unable to start container process: exec: "x": executable file not found in $PATH', True),
        ("exec failed: unable to start container process: exec /x: permission denied", True),
        ("the container `c` is not running", False),
        ("write to `/sys/fs/cgroup/x/cgroup.procs`: Permission denied", False),
        ("setrlimit `RLIMIT_NOFILE`: Operation not permitted", False),
        ("rootlet-nsenter: reassociate to namespace 'ns/user' failed: Operation not permitted", False),
    ],
)
def test_what_an_oci_runtime_says(words: str, is_about: bool) -> None:
    assert is_about_the_command(words) is is_about


REFUSED = b'{"msg":"no {such} \\"file\\"","level":"error","time":"2026-11-28T10:00:00Z"}'
"""As crun 1.21 writes it; 1.28 writes the same over five lines."""


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("after", [b"", b'{"level":"er', b'{"level":"debug","msg":"c"}', b"[" * 16000, b"\xff{}"])
def test_the_last_error_counts(indent: int | None, after: bytes) -> None:
    entries = [{"level": "warning", "msg": "a"}, {"level": "error", "msg": "b"}, json.loads(REFUSED)]
    log = "".join(json.dumps(entry, indent=indent) + "\n" for entry in entries).encode()
    assert last_error(log + after) == 'no {such} "file"'


def test_a_log_without_errors() -> None:
    assert last_error(b'{"level":"warning","msg":"a"}\n[{"level":"error"}]\n') == last_error(b"") == ""


@pytest.mark.parametrize("conmon_pid", [0, 1, 2**22 + 1])
def test_a_container_whose_monitor_is_no_process_here(conmon_pid: int) -> None:
    with pytest.raises(NotDirect, match="no monitor"):
        find_target(inspected(ID, conmon_pid=conmon_pid))
