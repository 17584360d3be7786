"""Runs the real command line against a real API server, in a thread beside the server's loop or in a process."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from ipc.link.wire.boot import WorkerMain
from supervisor.cli.main import run_cli
from tests.support.api_server import Master

ROOT: Final = Path(__file__).resolve().parents[2]


class Outcome(msgspec.Struct, frozen=True):
    """Outcome of a command."""

    code: int
    out: str
    err: str


def no_worker_main() -> WorkerMain:
    raise AssertionError("only `run` may ask for the workers' entry point")


def run_here(*arguments: str, stdin: bytes = b"") -> Outcome:
    """In this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    real_stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_cli(arguments, no_worker_main)
    finally:
        sys.stdin = real_stdin
    return Outcome(code, _text(out), _text(err))


async def rootlet(master: Master, *arguments: str, stdin: bytes = b"") -> Outcome:
    """Beside the server's loop."""
    return await asyncio.to_thread(run_here, "--socket", str(master.socket_path), *arguments, stdin=stdin)


async def start(master: Master, *arguments: str) -> asyncio.subprocess.Process:
    """As a process of its own."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "supervisor",
        *arguments,
        cwd=ROOT,
        env={**os.environ, "ROOTLET_SOCKET": str(master.socket_path), "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
