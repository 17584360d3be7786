""".../pods/{name}/exec and .../attach: a process's streams between Podman and a client, by WebSocket or SPDY.

As the kubelet and CRI runtimes do it (cri-streaming pkg/streaming/remotecommand): stdin, stdout and stderr are
channels, the last message is a Status with the exit code. Different on purpose: a command whose client has gone is
ended, as containerd ends one whose context is cancelled (execInContainer, internal/cri/server/container_execsync.go);
Podman would leave it running, with nobody to end it and nobody to count it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from ipc.link.wire.stream_channels import (
    Channel,
    Message,
    StreamStatus,
    TerminalSize,
    decode_size,
    exit_status,
    failure_status,
)
from workers.api_server.core.status_errors import ApiError, bad_request, too_many
from workers.api_server.core.stream_sockets import STOPPING_WORDS, Channels, Ended
from workers.api_server.core.upgrades import COMMANDS, Upgrade, negotiated
from workers.api_server.store.site import AppState
from workers.api_server.streams.collected import Collected
from workers.api_server.streams.command_streams import opened_channels
from workers.api_server.streams.stream_target import Streams, Target, not_running, running_container, wanted_streams
from workers.kubecontainer.runtime import ErrorKind, InspectedContainer, RuntimeCallError
from workers.libpod.streams import ProcessStreams
from workers.podman_files.container_process import has_open_input
from workers.proc.process_sessions import kill_session

FIRST_SIZE_WAIT_S: Final = 0.5
"""How long a terminal waits for the client to say how large it is: kubectl says so first of all."""
END_POLL_S: Final = 0.05
END_POLLS: Final = 100
"""How often Podman is asked about an end before the streams are said to have ended without one."""
MAX_CONTAINER_COMMANDS: Final = 64
"""Most commands of clients at once in one container. In all there are `middleware.MAX_SESSIONS`."""

RUNNING: Final = "running"
_GONE: Final = frozenset((ErrorKind.NOT_FOUND, ErrorKind.WRONG_STATE))
"""The container is not, or does not run."""

_UNCERTAIN: Final = frozenset((ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE))
"""Whether the command was started is unknown."""

T = TypeVar("T")
Resize = Callable[[TerminalSize], Awaitable[None]]
log = logging.getLogger(__name__)


class Opening(msgspec.Struct, frozen=True):
    """The client's first messages, from before its process was there."""

    size: TerminalSize | None = None
    held: Message | None = None
    """Something else than a size: it is for the process."""
    gone: bool = False


class StreamRequest(msgspec.Struct, frozen=True):
    """A request for a container's streams, whichever URL it came by."""

    streams: Streams
    target: Target
    upgrade: Upgrade


class RemoteCommand:
    """Handlers of exec and attach."""

    def __init__(self, site: AppState) -> None:
        self._site = site
        self._podman = site.podman
        self._sockets = site.sockets
        self._commands: Counter[str] = Counter()
        """Under way, by container id."""

    async def exec(self, request: web.Request) -> web.StreamResponse:
        command = request.query.getall("command", [])
        if not command:
            raise bad_request("you must specify at least one command for the container")
        return await self.execute(request, command, await self._asked(request))

    async def attach(self, request: web.Request) -> web.StreamResponse:
        return await self.join(request, await self._asked(request))

    async def execute(self, request: web.Request, command: Sequence[str], asked: StreamRequest) -> web.StreamResponse:
        """Run a command with the client's streams. Raises ApiError."""
        streams, target, upgrade = asked.streams, asked.target, asked.upgrade
        with self._counted(target):
            with _kubelets_words(target):
                session = await self._podman.create_exec(target.id, command, stdin=streams.stdin, tty=streams.tty)
            async with opened_channels(self._sockets, request, upgrade, streams) as client:
                opening = await _opening(client, waits_for_size=streams.tty)
                if not opening.gone:
                    await _say(client, await _reported(target, self._run(client, session, streams, opening)))
        return client.response

    async def join(self, request: web.Request, asked: StreamRequest) -> web.StreamResponse:
        """Join the client's streams with the container's own. Raises ApiError."""
        target, upgrade = asked.target, asked.upgrade
        streams = msgspec.structs.replace(asked.streams, stdin=asked.streams.stdin and target.stdin, tty=target.tty)
        with _kubelets_words(target):
            found = await self._podman.inspect(target.id)
            if found.state != RUNNING:
                raise not_running(target.name)
            notice = input_notice(target, found) if streams.stdin else ""
            process = await self._podman.attach(target.id, stdin=streams.stdin, tty=target.tty)
        try:
            async with opened_channels(self._sockets, request, upgrade, asked.streams) as client:
                joined = self._join(client, process, streams, target, notice)
                await _say(client, await _reported(target, joined))
        finally:
            process.close()
        return client.response

    async def output(self, target: Target, command: Sequence[str]) -> Collected:
        """Run a command without an input, and take in all that it prints. Raises ApiError."""
        collected, streams = Collected(), Streams(stdin=False, stdout=True, stderr=True, tty=False)
        with self._counted(target):
            with _kubelets_words(target):
                session = await self._podman.create_exec(target.id, command, stdin=False, tty=False)
            collected.status = await _reported(target, self._run(collected, session, streams, Opening()))
        return collected

    async def _asked(self, request: web.Request) -> StreamRequest:
        pod = await self._site.pod(request)
        streams = wanted_streams(request.query)
        target = running_container(pod.message, request.query.get("container", ""))
        return StreamRequest(streams, target, negotiated(request, COMMANDS))

    @contextlib.contextmanager
    def _counted(self, target: Target) -> Iterator[None]:
        """Raises ApiError 429."""
        if self._commands[target.id] >= MAX_CONTAINER_COMMANDS:
            raise too_many(f"too many commands in container {target.name} at once: at most {MAX_CONTAINER_COMMANDS}")
        self._commands[target.id] += 1
        try:
            yield
        finally:
            self._commands[target.id] -= 1
            self._commands += Counter()  # without those of which there is none

    async def _run(self, client: Channels, session: str, streams: Streams, opening: Opening) -> StreamStatus | None:
        """A command from its start to its end, which comes before this one's, whatever becomes of its client."""
        may_run = True
        try:
            started = await self._podman.start_exec(session, tty=streams.tty, size=opening.size)
            with contextlib.closing(started) as process:
                copy = _Copy(client, process, streams, lambda size: self._podman.resize_exec(session, size))
                ended = await self._sockets.first_end(client, *copy.ways(opening.held))
            if ended is not Ended.FINISHED:
                return _broken_off(ended)
            code = await _settled(lambda: self._exit_code(session))
            may_run = False
            return exit_status(code)
        except RuntimeCallError as error:
            may_run = error.kind in _UNCERTAIN
            raise
        finally:
            if may_run:
                await self._end_command(session)

    async def _exit_code(self, session: str) -> int | None:
        state = await self._podman.exec_state(session)
        return None if state.running else state.exit_code

    async def _end_command(self, session: str) -> None:
        """End the command and the processes that it has started; a failure is logged."""
        try:
            pid = await _settled(lambda: self._pid(session))
            if pid:
                await asyncio.to_thread(kill_session, pid)
        except (TimeoutError, RuntimeCallError, OSError) as error:
            log.warning("a command whose client has gone may go on (exec session %s): %s", session, error)

    async def _pid(self, session: str) -> int | None:
        """Process id of a command; 0 of one that has ended, None of one of which that is not known yet."""
        try:
            state = await self._podman.exec_state(session)
        except RuntimeCallError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return 0
            if error.kind in _UNCERTAIN:
                return None
            raise
        if state.running and state.pid:
            return state.pid
        return 0 if state.can_remove else None

    async def _join(
        self, client: Channels, process: ProcessStreams, streams: Streams, target: Target, notice: str
    ) -> StreamStatus | None:
        opening = await _opening(client, waits_for_size=target.tty and streams.stdin)
        if opening.gone:
            return None
        if notice and streams.stderr:
            await client.send(Channel.STDERR, notice.encode())
        copy = _Copy(client, process, streams, lambda size: self._podman.resize_container(target.id, size))
        if opening.size is not None:
            await copy.set_size(opening.size)
        ended = await self._sockets.first_end(client, *copy.ways(opening.held))
        if ended is not Ended.FINISHED:
            return _broken_off(ended)
        await _settled(lambda: self._end(target))
        return exit_status(0)  # As upstream: how the container ended is told by its status.

    async def _end(self, target: Target) -> str | None:
        """Return the container's end; None while it runs."""
        try:
            state = (await self._podman.inspect(target.id)).state
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return "removed"
        return None if state == RUNNING else state


def input_notice(target: Target, found: InspectedContainer) -> str:
    """Return the notice that a container does not get this client's input; empty when it does.

    An input without a terminal ends with the first client that goes, as `stdinOnce` wants it.
    """
    if target.tty or has_open_input(found):
        return ""
    return f"warning: the input of container {target.name} has ended with a client that was attached before\n"


class _Copy:
    """Both ways between one client and one process."""

    def __init__(self, client: Channels, process: ProcessStreams, streams: Streams, resize: Resize) -> None:
        self._client = client
        self._process = process
        self._streams = streams
        self._resize = resize
        self._size: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
        """The newest that was not set yet: setting one takes a call, and input must not wait for that."""

    def ways(self, held: Message | None) -> tuple[Coroutine[Any, Any, Ended], ...]:
        """All that is to be done at the same time. ``held`` was received already."""
        return self._show(), self._feed(held), self._follow_size()

    async def _show(self) -> Ended:
        """Send the process's output, to its end. Raises ConnectionError when that breaks off."""
        wanted = {Channel.STDOUT: self._streams.stdout, Channel.STDERR: self._streams.stderr}
        async for piece in self._process.output():
            if not wanted[piece.channel]:
                continue
            try:
                await self._client.send(piece.channel, piece.data)
            except ConnectionError:
                return Ended.CLIENT_GONE
        return Ended.FINISHED

    async def _feed(self, held: Message | None) -> Ended:
        """Pass on the client's input until it goes."""
        message = held
        while True:
            if message is not None:
                await self._take(message)
            message = await self._client.receive()
            if message is None:
                return Ended.CLIENT_GONE

    async def _take(self, message: Message) -> None:
        if message.channel == Channel.RESIZE:
            if self._size.full():
                self._size.get_nowait()
            self._size.put_nowait(message.data)
        elif message.channel == Channel.STDIN and self._streams.stdin:
            try:
                if message.ends:
                    self._process.end_input()
                elif message.data:
                    await self._process.write(message.data)
            except OSError:
                return  # Nobody reads it any more; what the process has said is still on its way.

    async def _follow_size(self) -> Ended:
        while True:
            try:
                size = decode_size(await self._size.get())
            except ValueError as error:
                log.info("a terminal was not resized: %s", error)
            else:
                await self.set_size(size)

    async def set_size(self, size: TerminalSize) -> None:
        """One that cannot be set is no reason to end anything: the process may just have ended."""
        try:
            await self._resize(size)
        except RuntimeCallError as error:
            log.info("a terminal was not resized: %s", error)


async def _settled(ask: Callable[[], Awaitable[T | None]]) -> T:
    """Wait for Podman's record of the end. Raises TimeoutError."""
    for _ in range(END_POLLS):
        if (found := await ask()) is not None:
            return found
        await asyncio.sleep(END_POLL_S)
    raise TimeoutError


async def _opening(client: Channels, *, waits_for_size: bool) -> Opening:
    if not await client.ready():
        return Opening(gone=True)
    if not waits_for_size:
        return Opening()
    try:
        async with asyncio.timeout(FIRST_SIZE_WAIT_S):
            message = await client.receive()
    except TimeoutError:
        return Opening()
    if message is None or message.channel != Channel.RESIZE:
        return Opening(held=message, gone=message is None)
    try:
        return Opening(decode_size(message.data))
    except ValueError:
        return Opening()


async def _reported(target: Target, running: Awaitable[StreamStatus | None]) -> StreamStatus | None:
    """The status for the client, of what went wrong too; None when nobody is there to be told."""
    try:
        return await running
    except RuntimeCallError as error:
        return failure_status(f"error executing command in container {target.name}: {error}")
    except TimeoutError:
        return failure_status(f"the streams of container {target.name} ended, but its process did not")
    except ConnectionError as error:
        return failure_status(f"the streams of container {target.name} broke off: {error}")


def _broken_off(ended: Ended) -> StreamStatus | None:
    return failure_status(STOPPING_WORDS) if ended is Ended.STOPPING else None


async def _say(client: Channels, status: StreamStatus | None) -> None:
    if status is None:
        return
    with contextlib.suppress(ConnectionError):  # it has gone meanwhile
        await client.say(status)


@contextlib.contextmanager
def _kubelets_words(target: Target) -> Iterator[None]:
    """Convert Podman's error from before there are streams into an answer."""
    try:
        yield
    except RuntimeCallError as error:
        if error.kind in _GONE:
            raise not_running(target.name) from None
        raise ApiError(500, f"error executing command in container {target.name}: {error}") from None
