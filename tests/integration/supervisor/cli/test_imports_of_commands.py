"""Imports of the processes of commands, of other projects and of the standard library's large parts."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from supervisor.cli.main import COMMANDS
from tests.support.api_server import DEADLINE_S, Master, event_changed, pod_changed
from tests.support.cli import ROOT

ALWAYS: Final = frozenset({"click", "msgspec", "h11", "typing_extensions"})
"""Third-party packages that a command may import which asks something and prints the answer."""
HEAVY: Final = frozenset({"asyncio", "concurrent", "email", "http", "importlib.metadata", "logging", "ssl"})
"""Modules of the standard library: 5 to 40 ms each."""
NAMES: Final = tuple(name for commands in COMMANDS.values() for name in commands)
MODULES: Final[Mapping[str, str]] = {
    name: f"supervisor.cli.commands.{room}.{name.replace('-', '_')}"
    for room, commands in COMMANDS.items()
    for name in commands
}
OURS: Final = frozenset({"ipc", "supervisor", "workers"})
_LINE: Final = re.compile(r"^import time: +[0-9]+ \| +[0-9]+ \| +([^ \n]+)$", re.MULTILINE)
MANIFEST: Final = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"


def imported_by(*arguments: str, **environment: str) -> frozenset[str]:
    """Full names of the modules that the command imports beyond what the interpreter itself does, run to its end."""
    entry = "from supervisor.__main__ import main; main()"
    return _modules(entry, *arguments, **environment) - _modules("pass")


def _modules(program: str, *arguments: str, **environment: str) -> frozenset[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    found = frozenset(_LINE.findall(done.stderr))
    assert found, done.stderr
    return found


def third_party(modules: frozenset[str]) -> frozenset[str]:
    """Top-level packages. A compiled module's own children (``org``, which platform makes up) have no file."""
    tops = {name.partition(".")[0] for name in modules} - OURS - sys.stdlib_module_names
    return frozenset(top for top in tops if not top.startswith("_distutils") and top != "org")


def heavy(modules: frozenset[str]) -> frozenset[str]:
    return HEAVY & {part for name in modules for part in (name, name.partition(".")[0])}


@pytest.mark.parametrize(
    "arguments",
    [
        "get pods",
        "get pods -A -o wide",
        "get pod web -o name",
        "get pods -o json",
        "get events",
        "get configmaps",
        "get workers -o wide",
        "describe pod web",
        "logs web",
        "delete pod web --no-wait",
        "wait --for=condition=Ready pod/web",
        "apply -f MANIFEST",
        "version",
    ],
)
async def test_a_command_that_prints_imports_little(master: Master, tmp_path: Path, arguments: str) -> None:
    master.ready(pod_changed(1, "web"), event_changed(2, "web.1", "web"))
    log = master.logs_dir / "default_web_uid-web" / "app" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_text("2026-01-01T00:00:00.000000000+00:00 stdout F started\n")
    manifest = tmp_path / "web.yaml"
    manifest.write_text(MANIFEST)
    words = [str(manifest) if word == "MANIFEST" else word for word in arguments.split()]
    found = await asyncio.to_thread(imported_by, *words, ROOTLET_SOCKET=str(master.socket_path))
    assert third_party(found) <= ALWAYS
    assert heavy(found) == frozenset()


@pytest.mark.parametrize("command", sorted(set(NAMES) - {"load-test"}))
def test_help_imports_no_more_than_a_command_that_prints(command: str) -> None:
    found = imported_by(command, "--help")
    assert third_party(found) <= ALWAYS
    assert heavy(found) == frozenset()
    assert found.intersection(MODULES.values()) <= {MODULES[command]}


def test_a_stream_imports_no_server() -> None:
    """aiohttp is 0.2 s of CPU, which each `rootlet exec` would take."""
    streams = "import supervisor.cli.streams.remote_command, supervisor.cli.streams.forwarding"
    found = _modules(streams) - _modules("pass")
    assert third_party(found) <= ALWAYS | {"wsproto"}


@pytest.mark.parametrize("words", ["rootlet ", "rootlet ex", "rootlet --he"])
def test_help_and_completion_of_names_import_no_command(words: str) -> None:
    for found in (
        imported_by("--help"),
        imported_by(_ROOTLET_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD="1"),
    ):
        assert third_party(found) <= ALWAYS
        assert found.isdisjoint(MODULES.values())


def test_names_and_options_are_completed() -> None:
    assert completed("rootlet ", 1) == list(NAMES)
    assert completed("rootlet de", 1) == ["describe", "delete", "debug"]
    assert completed("rootlet --inst", 1) == ["--instance"]
    assert "--no-headers" in completed("rootlet get --no", 2)


async def test_names_that_are_there_are_completed(master: Master) -> None:
    master.ready(pod_changed(1, "web", containers=("app", "log")), pod_changed(2, "db", namespace="test"))
    socket = str(master.socket_path)

    async def found(words: str) -> list[str]:
        return await asyncio.to_thread(completed, words, len(words.split(" ")) - 1, socket)

    assert await found("rootlet logs w") == ["web"]
    assert await found("rootlet logs -n test ") == ["db"]
    assert await found("rootlet logs web -c ") == ["app", "log"]
    assert await found("rootlet exec -n t") == ["test"]
    assert await found("rootlet describe no") == ["nodes"]
    assert await found("rootlet describe pod ") == ["web"]
    assert await found("rootlet wait pod/") == ["pod/web"]
    assert await asyncio.to_thread(completed, "rootlet logs w", 2, "/nowhere") == [""]


def completed(words: str, index: int, socket: str = "/nowhere") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", "from supervisor.__main__ import main; main()"],
        cwd=ROOT,
        env={
            **os.environ,
            "_ROOTLET_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(index),
            "ROOTLET_SOCKET": socket,
        },
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]
