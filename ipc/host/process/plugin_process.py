"""Programs that are asked one question and print one answer: credential plugins of clusters and of registries."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from typing import cast


class PluginProcessError(Exception):
    """A program that gave no answer; its text repeats nothing that the program has printed."""


async def ask_program(
    command: Sequence[str], env: Mapping[str, str], question: bytes, *, deadline_s: float, max_bytes: int
) -> bytes:
    """Output of the program, when it has read the question and ended with 0.

    It gets this process' variables and ``env`` over them. ``deadline_s`` in seconds; ``max_bytes`` is the largest
    output that is taken. Its whole session is ended with it. Raises PluginProcessError.
    """
    program = command[0]
    talk = _Talk(max_bytes)
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: talk,
            *command,
            env={**os.environ, **env},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # it may hold the credentials
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise PluginProcessError(f"{program}: {_reason(error)}") from None
    try:
        async with asyncio.timeout(deadline_s):
            _put(transport, question)
            await talk.over.wait()
    except TimeoutError:
        raise PluginProcessError(f"{program}: no answer within {deadline_s:g} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):  # all of them have ended
            os.killpg(transport.get_pid(), signal.SIGKILL)
        transport.close()
        await talk.exited.wait()
    if len(talk.output) > max_bytes:
        raise PluginProcessError(f"{program}: has printed more than {max_bytes} bytes")
    if code := transport.get_returncode():
        raise PluginProcessError(f"executable {program} failed with exit code {code}")
    return bytes(talk.output)


class _Talk(asyncio.SubprocessProtocol):
    """Output of a program so far, and how far it is."""

    def __init__(self, max_bytes: int) -> None:
        self.output = bytearray()
        self.over = asyncio.Event()
        """Set when the program has ended and closed its output, or printed too much."""
        self.exited = asyncio.Event()
        self._max_bytes = max_bytes

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output += data
        if len(self.output) > self._max_bytes:
            self.over.set()

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.over.set()


def _put(transport: asyncio.SubprocessTransport, question: bytes) -> None:
    """Write the question; a program that does not read it may answer all the same."""
    pipe = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))  # uvloop's is one by its methods only
    pipe.write(question)
    pipe.close()


def _reason(error: OSError | ValueError) -> str:
    """Why it cannot be started; a ValueError is a NUL in its arguments or variables."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else "has an argument or variable with a NUL"
