"""This end of exec and attach: standard streams and terminal on one side, a WebSocket on the other."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NoReturn

import click
import msgspec

from ipc.link.eventloop.tasks import first_of
from ipc.link.wire.stream_channels import Channel, ChannelSocket, StreamStatus, decode_status, encode_size
from supervisor.cli.options import Failure
from supervisor.cli.streams.detach_keys import KeyFilter
from supervisor.cli.streams.terminal import BlockingFile, descriptor, raw_terminal, terminal_size
from supervisor.client.websocket import Query, StreamClient

ENDING_SIGNALS: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""Signals that end the command, with the terminal as it was. Ctrl-C in a raw terminal is none: it is a key."""
NO_TERMINAL: Final = "Unable to use a TTY - input is not a terminal or the right kind of file"
LOST: Final = "lost connection to the agent's API server; the command may go on"


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """Request of an exec or attach, and the terminal's part in it."""

    socket: Path
    path: str
    query: Query
    stdin: bool
    tty: bool
    """Our standard input is a terminal, and the process's streams are one."""
    detach_keys: bytes = b""
    """In a terminal these leave the process alone; empty for none."""


def usable_terminal(*, stdin: bool, tty: bool, quiet: bool) -> bool:
    """Whether the streams can be a terminal: only with a standard input that is one (kubectl exec.go, SetupTTY)."""
    if not (stdin and tty):
        return False
    if sys.stdin is not None and sys.stdin.isatty():
        return True
    if not quiet:
        click.echo(NO_TERMINAL, err=True)
    return False


def stream_query(*, container: str, stdin: bool, tty: bool) -> list[tuple[str, str]]:
    """v1 PodExecOptions and PodAttachOptions. A terminal has one output."""
    flags = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    return [("container", container), *((name, "true") for name, value in flags.items() if value)]


def run_remote(remote: Remote) -> int:
    """Stream until the process ends: its exit code. Raises Failure, AgentError, and BrokenPipeError of our own output.

    Ended by a signal it raises click's Exit, with 128 and the signal's number as a shell shows it.
    """
    return asyncio.run(_until_signalled(remote))


async def _until_signalled(remote: Remote) -> int:
    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def end(signum: int) -> None:
        received.append(signum)
        task.cancel()

    # A signal that comes later than the raw terminal finds its handler.
    with _handled(dict.fromkeys(ENDING_SIGNALS, end)), _terminal(remote):
        try:
            return await _stream(remote)
        except asyncio.CancelledError:
            if not received:
                raise
            raise click.exceptions.Exit(128 + received[0]) from None


def _terminal(remote: Remote) -> contextlib.AbstractContextManager[None]:
    return raw_terminal(sys.stdin.fileno()) if remote.tty else contextlib.nullcontext()


@contextlib.contextmanager
def _handled(handlers: Mapping[signal.Signals, Callable[[int], None]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for signum, handler in handlers.items():
        loop.add_signal_handler(signum, handler, signum)
    try:
        yield
    finally:
        for signum in handlers:
            loop.remove_signal_handler(signum)


async def _stream(remote: Remote) -> int:
    async with StreamClient(remote.socket).opened(remote.path, remote.query) as channels:
        keys = KeyFilter(remote.detach_keys if remote.tty else b"")
        return await first_of(
            _show_output(channels),
            _send_input(channels, keys) if remote.stdin else _never(),
            _follow_size(channels, sys.stdin.fileno()) if remote.tty else _never(),
        )


async def _never() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("for ever")


def _exit_code(status: StreamStatus | None) -> int:
    if status is None:
        raise Failure(LOST, prefix="error: ")
    code = status.exit_code()
    if code is None:
        raise Failure(f"Internal error occurred: {status.message}", prefix="error: ")
    return code


async def _follow_size(channels: ChannelSocket, fd: int) -> NoReturn:
    """Tell the size of our terminal, now and whenever it changes, for ever."""
    changed = asyncio.Event()
    changed.set()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            size = terminal_size(fd)
            if size is not None:
                await channels.send(Channel.RESIZE, encode_size(size))
    except ConnectionError:
        await _never()  # it has ended, and its output tells how
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


async def _send_input(channels: ChannelSocket, keys: KeyFilter) -> int:
    """Our standard input, to its end; that of a process that does not read it any more goes nowhere. Back, with exit
    code 0, only when the keys were typed that leave the process alone."""
    file = BlockingFile(descriptor(sys.stdin))
    with contextlib.suppress(ConnectionError):
        while not keys.detached and (data := await _read(file)):
            if typed := keys.feed(data):
                await channels.send(Channel.STDIN, typed)
        if keys.detached:
            return 0
        await channels.end(Channel.STDIN)
    return await _never()


async def _read(file: BlockingFile) -> bytes:
    try:
        return await file.read()
    except OSError as error:
        # EIO: a terminal that was hung up, or is read in the background by an orphan.
        if error.errno in (errno.EIO, errno.EBADF):
            return b""
        raise


async def _show_output(channels: ChannelSocket) -> int:
    """Until the process has ended: its exit code. Raises Failure, also when the connection broke before that."""
    files = {Channel.STDOUT: BlockingFile(descriptor(sys.stdout)), Channel.STDERR: BlockingFile(descriptor(sys.stderr))}
    while (message := await channels.receive()) is not None:
        if message.channel == Channel.ERROR and not message.ends:
            return _exit_code(_decoded(message.data))
        if message.channel in files:
            await _write(files[Channel(message.channel)], message.data)
    return _exit_code(None)


async def _write(file: BlockingFile, data: bytes) -> None:
    try:
        await file.write(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"the output cannot be written: {error.strerror}") from None


def _decoded(data: bytes) -> StreamStatus | None:
    try:
        return decode_status(data)
    except ValueError:
        return None
