"""Logs on their way to standard output: one after the other, or line by line as they come."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from queue import Queue
from typing import Final

import click
import msgspec

from ipc.host.text.safe_text import safe_text
from supervisor.cli.options import Failure
from supervisor.client.errors import AgentError

MAX_LINE_BYTES: Final = 1024 * 1024
"""A longer line is printed in pieces."""
MAX_WAITING_LINES: Final = 256
"""Lines of logs that are printed together, read and not printed yet."""


class LogStream(msgspec.Struct, frozen=True):
    """One container's log. Reading it raises AgentError."""

    pieces: Iterator[bytes]
    prefix: bytes
    """Before each line; empty for none."""

    def lines(self) -> Iterator[bytes]:
        """Whole lines behind the prefix; only the last one may lack its end."""
        rest = b""
        for piece in self.pieces:
            *lines, rest = (rest + piece).split(b"\n")
            yield from (self.prefix + line + b"\n" for line in lines)
            if len(rest) > MAX_LINE_BYTES:
                yield self.prefix + rest
                rest = b""
        if rest:
            yield self.prefix + rest


def print_streams(streams: Sequence[LogStream], *, together: bool, ignore_errors: bool = False) -> None:
    """Print all of them, also when some cannot be read. Raises AgentError or Failure for those, but where
    ``ignore_errors`` has them only said.

    ``together`` mixes their lines, for logs that are followed.
    """
    errors = _print_together(streams) if together else _print_in_turn(streams)
    if ignore_errors:
        click.echo("".join(f"error: {safe_text(str(error))}\n" for error in errors), err=True, nl=False)
        return
    if len(errors) > 1:
        raise Failure("\n".join(dict.fromkeys(map(str, errors))), prefix="")
    if errors:
        raise errors[0]


def _print_in_turn(streams: Sequence[LogStream]) -> list[AgentError]:
    errors = []
    for stream in streams:
        try:
            for piece in stream.lines() if stream.prefix else stream.pieces:
                _write(piece)
        except AgentError as error:
            errors.append(error)
    return errors


def _print_together(streams: Sequence[LogStream]) -> list[AgentError]:
    """A thread reads each; this one writes, so that an interrupt ends it at once and no line is torn."""
    read: Queue[bytes | AgentError | None] = Queue(MAX_WAITING_LINES)
    for stream in streams:
        threading.Thread(target=_read, args=(stream, read), daemon=True).start()
    errors, running = [], len(streams)
    while running:
        match read.get():
            case bytes(line):
                _write(line)
            case AgentError() as error:
                errors.append(error)
            case None:
                running -= 1
    return errors


def _read(stream: LogStream, out: Queue[bytes | AgentError | None]) -> None:
    try:
        for line in stream.lines():
            out.put(line)
    except AgentError as error:
        out.put(error)
    finally:
        out.put(None)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
