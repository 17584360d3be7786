"""exec and attach between a WebSocket and Podman's end: protocol, half-closing, bounds, and every way to end early."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import msgspec
import pytest
import uvloop

from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.base import Shutdown
from ipc.link.wire.stream_channels import (
    MAX_MESSAGE_BYTES,
    V4,
    V5,
    Channel,
    Message,
    StreamStatus,
    TerminalSize,
    decode_status,
    encode_size,
)
from tests.support.api_server import (
    DEADLINE_S,
    PODMAN_SOCKET,
    Master,
    api_server,
    container_status,
    eventually,
    pod_changed,
    status_of,
)
from tests.support.open_files import open_files, open_files_before
from tests.support.podman_streams import PodmanEnd, Process, podman_end
from tests.support.stream_client import StreamClient
from tests.support.until import until_still
from workers.api_server.core.stream_sockets import STOPPING_WORDS
from workers.api_server.middleware import MAX_SESSIONS
from workers.api_server.streams.remote_command import MAX_CONTAINER_COMMANDS
from workers.proc import procfs

POD: Final = "/api/v1/namespaces/default/pods/web"
EXEC: Final = (("command", "cmd"), ("stdin", "true"), ("stdout", "true"), ("stderr", "true"))
BOUND_BYTES: Final = 4 * 1024 * 1024
"""More than all buffers on the way, kernel's and ours, can hold together."""
LARGE_BYTES: Final = 20 * 1024 * 1024


def web(*names: str, phase: str = "Running", **fields: Any) -> PodChanged:
    """A pod whose containers run."""
    names = names or ("app",)
    statuses = [container_status(name, containerID=f"podman://id-{name}") for name in names]
    return pod_changed(1, "web", containers=names, status=status_of(phase=phase, containerStatuses=statuses), **fields)


class Client(StreamClient):
    """The far end of a stream."""

    def go(self) -> None:
        """Without a word, and whatever is not sent yet."""
        connection = self.socket._response.connection
        assert connection is not None
        assert connection.transport is not None
        connection.transport.abort()

    async def rest(self) -> tuple[dict[int, bytes], StreamStatus | None]:
        """Bytes that came on each channel until the end, and how it ended."""
        shown: dict[int, list[bytes]] = {}
        status = None
        while status is None and (message := await self.next()) is not None:
            if message.channel == Channel.ERROR:
                status = decode_status(message.data)
            else:
                shown.setdefault(message.channel, []).append(message.data)
        return {channel: b"".join(pieces) for channel, pieces in shown.items()}, status


@contextlib.asynccontextmanager
async def opened(
    master: Master, path: str = "exec", query: tuple[tuple[str, str], ...] = EXEC, protocol: str = V5
) -> AsyncIterator[Client]:
    async with _socket(master, path, query, protocol) as socket:
        assert socket.protocol == protocol
        yield Client(socket)


@contextlib.asynccontextmanager
async def _socket(
    master: Master, path: str, query: tuple[tuple[str, str], ...], protocol: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    connector = aiohttp.UnixConnector(str(master.socket_path))
    timeout = aiohttp.ClientWSTimeout(ws_close=DEADLINE_S)
    protocols = (protocol,) if protocol else ()
    async with (
        aiohttp.ClientSession("http://rootlet", connector=connector) as session,
        session.ws_connect(f"{POD}/{path}", params=query, protocols=protocols, timeout=timeout) as socket,
    ):
        yield socket


async def echo(process: Process) -> int:
    while data := await process.input.read(65536):
        await process.say(data)
    await process.say(b"end", stream=2)
    return 3


async def endless(process: Process) -> int:
    while True:
        await process.say(bytes(32 * 1024))


async def deaf(process: Process) -> int:
    """Neither reads nor says anything, until the connection is gone: that it notices only when it says something."""
    while True:
        await asyncio.sleep(0.02)
        await process.say(b"")


async def patient(process: Process) -> int:
    """Says nothing, until its input ends or the connection does."""
    with contextlib.suppress(ConnectionError):
        await process.input.read()
    return 0


# --- what goes through -------------------------------------------------------------------------------------------


async def test_streams_and_exit_code(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    async with opened(master) as client:
        await client.channels.send(Channel.STDIN, b"hello")
        assert await client.next() == Message(Channel.STDOUT, b"hello")
        await client.channels.end(Channel.STDIN)
        shown, status = await client.rest()
    assert shown == {Channel.STDERR: b"end"}
    assert status is not None
    assert status.exit_code() == 3
    assert status.reason == "NonZeroExitCode"


async def test_success_is_a_status_without_causes(master: Master, podman: PodmanEnd) -> None:
    master.ready(web())
    async with opened(master) as client:
        message = await client.next()
        assert message is not None
        assert msgspec.json.decode(message.data) == {"metadata": {}, "status": "Success"}
        assert await client.next() is None
        assert client.socket.close_code == aiohttp.WSCloseCode.OK


async def test_the_command_is_made_as_asked(master: Master, podman: PodmanEnd) -> None:
    seen: list[dict[str, Any]] = []

    async def note(process: Process) -> int:
        seen.append(process.options)
        return 0

    podman.program = note
    master.ready(web())
    async with opened(master, query=(("command", "a b"), ("command", "-c"), ("stdout", "1"))) as client:
        await client.rest()
    (options,) = seen
    assert (options["Cmd"], options["AttachStdin"], options["Tty"]) == (["a b", "-c"], False, False)


async def test_the_older_protocol_cannot_end_the_input(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    async with opened(master, protocol=V4) as client:
        await client.channels.end(Channel.STDIN)
        await client.channels.send(Channel.STDIN, b"on")
        assert await client.next() == Message(Channel.STDOUT, b"on")


@pytest.mark.parametrize("protocol", ["channel.k8s.io", ""])
async def test_the_oldest_protocols_tell_a_failure_as_text(master: Master, podman: PodmanEnd, protocol: str) -> None:
    async def fails(process: Process) -> int:
        await process.say(await process.input.read(2))
        return 3

    podman.program = fails
    master.ready(web())
    async with _socket(master, "exec", EXEC, protocol) as socket:
        assert socket.protocol == (protocol or None)
        await socket.send_bytes(b"\x00on")
        assert await socket.receive_bytes() == b"\x01on"
        assert await socket.receive_bytes() == b"\x03command terminated with non-zero exit code: 3"


async def test_messages_as_text(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    async with _socket(master, "exec", EXEC, "v4.base64.channel.k8s.io") as socket:
        await socket.send_str("0b24=")
        assert await socket.receive_str() == "1b24="
    async with _socket(master, "exec", EXEC, "base64.channel.k8s.io") as socket:
        await socket.send_str("0no Base64")
        assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE


async def test_only_the_streams_that_are_wanted(master: Master, podman: PodmanEnd) -> None:
    async def both(process: Process) -> int:
        await process.say(b"out")
        await process.say(b"err", stream=2)
        return 0

    podman.program = both
    master.ready(web())
    async with opened(master, query=(("command", "cmd"), ("stderr", "true"))) as client:
        assert (await client.rest())[0] == {Channel.STDERR: b"err"}


async def test_large_transfers_are_exact(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    data = os.urandom(LARGE_BYTES)
    async with opened(master) as client:

        async def send() -> None:
            for start in range(0, len(data), 32 * 1024):
                await client.channels.send(Channel.STDIN, data[start : start + 32 * 1024])
            await client.channels.end(Channel.STDIN)

        _, (shown, status) = await asyncio.gather(send(), client.rest())
    assert hashlib.sha256(shown[Channel.STDOUT]).digest() == hashlib.sha256(data).digest()
    assert status is not None


async def test_a_frame_of_any_length_comes_in_pieces(master: Master, podman: PodmanEnd) -> None:
    async def one_large(process: Process) -> int:
        await process.say(bytes(3 * MAX_MESSAGE_BYTES))
        return 0

    podman.program = one_large
    master.ready(web())
    async with opened(master) as client:
        shown, _ = await client.rest()
    assert len(shown[Channel.STDOUT]) == 3 * MAX_MESSAGE_BYTES


async def test_a_terminal_begins_with_the_clients_size_and_follows_it(master: Master, podman: PodmanEnd) -> None:
    async def until_told(process: Process) -> int:
        await process.input.readexactly(1)
        await process.say_raw(b"raw \xff")
        return 0

    podman.program = until_told
    master.ready(web())
    async with opened(master, query=(*EXEC, ("tty", "true"))) as client:
        await client.channels.send(Channel.RESIZE, encode_size(TerminalSize(97, 31)))
        await eventually(lambda: bool(podman.started), "it was started")
        await client.channels.send(Channel.RESIZE, b"no size")
        await client.channels.send(Channel.RESIZE, encode_size(TerminalSize(1, 2)))
        await eventually(lambda: podman.resized == ["w=1&h=2"], "it was resized")
        await client.channels.send(Channel.STDIN, b"x")
        assert (await client.rest())[0] == {Channel.STDOUT: b"raw \xff"}
    assert podman.started == [{"Detach": False, "Tty": True, "w": 97, "h": 31}]


async def test_what_is_typed_before_the_size_is_not_lost(master: Master, podman: PodmanEnd) -> None:
    async def first_key(process: Process) -> int:
        await process.say_raw(await process.input.readexactly(1))
        return 0

    podman.program = first_key
    master.ready(web())
    async with opened(master, query=(*EXEC, ("tty", "true"))) as client:
        await client.channels.send(Channel.STDIN, b"k")
        assert (await client.rest())[0] == {Channel.STDOUT: b"k"}


async def test_attach_has_the_containers_own_streams(master: Master, podman: PodmanEnd) -> None:
    seen: list[str] = []

    async def talk(process: Process) -> int:
        seen.append(process.options["query"])
        await process.say(b"out")
        return 9

    podman.program = talk
    master.ready(web())
    async with opened(master, "attach", EXEC[1:]) as client:
        shown, status = await client.rest()
    assert shown == {Channel.STDOUT: b"out"}
    assert status is not None
    assert status.exit_code() == 0
    assert seen == ["stream=true&stdin=false&stdout=true&stderr=true&detachKeys="]


async def test_a_joined_terminal_has_the_clients_size_before_its_keys(master: Master, podman: PodmanEnd) -> None:
    async def first_key(process: Process) -> int:
        await process.input.readexactly(1)
        await process.say_raw(",".join(podman.resized).encode())
        return 0

    podman.program = first_key
    pod = web()
    shell = msgspec.structs.replace(pod.pod.spec.containers[0], tty=True, stdin=True)
    spec = msgspec.structs.replace(pod.pod.spec, containers=(shell,))
    master.ready(msgspec.structs.replace(pod, pod=msgspec.structs.replace(pod.pod, spec=spec)))
    async with opened(master, "attach", (*EXEC[1:], ("tty", "true"))) as client:
        await client.channels.send(Channel.RESIZE, encode_size(TerminalSize(97, 31)))
        await client.channels.send(Channel.STDIN, b"x")
        assert (await client.rest())[0] == {Channel.STDOUT: b"w=97&h=31"}


async def test_many_at_once_leave_no_task(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())

    async def one(number: int) -> None:
        async with opened(master) as client:
            await client.channels.send(Channel.STDIN, b"%d" % number)
            await client.channels.end(Channel.STDIN)
            shown, _ = await client.rest()
            assert shown[Channel.STDOUT] == b"%d" % number

    await one(0)
    tasks, descriptors = len(asyncio.all_tasks()), open_files_before()
    await asyncio.gather(*(one(number) for number in range(50)))
    await eventually(lambda: len(asyncio.all_tasks()) <= tasks, "no tasks are left")
    # The client keeps no connections of WebSockets.
    await eventually(lambda: open_files() <= descriptors, "no descriptors are left")


# --- bounds ------------------------------------------------------------------------------------------------------


async def test_a_client_that_reads_nothing_stops_the_output(master: Master, podman: PodmanEnd) -> None:
    said = 0

    async def count(process: Process) -> int:
        nonlocal said
        while True:
            await process.say(bytes(32 * 1024))
            said += 32 * 1024

    podman.program = count
    master.ready(web())
    async with opened(master):
        await eventually(lambda: said > 0, "it has begun")
        await until_still(lambda: said)
        assert said < BOUND_BYTES
    await eventually(lambda: podman.running == 0, "its connection was closed")


async def test_a_process_that_reads_nothing_stops_the_input(master: Master, podman: PodmanEnd) -> None:
    podman.program = deaf
    master.ready(web())
    sent = 0
    async with opened(master) as client:

        async def send() -> None:
            nonlocal sent
            while True:
                await client.channels.send(Channel.STDIN, bytes(32 * 1024))
                sent += 32 * 1024

        sending = asyncio.create_task(send())
        await eventually(lambda: sent > 0, "it has begun")
        await until_still(lambda: sent)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        assert sent < BOUND_BYTES
        client.go()
    await eventually(lambda: podman.running == 0, "its connection was closed")


async def test_a_message_that_is_too_large_ends_the_stream(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    async with opened(master) as client:
        await client.channels.send(Channel.STDIN, bytes(MAX_MESSAGE_BYTES + 1))
        assert (await client.rest())[1] is None
        assert client.socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
    await eventually(lambda: podman.running == 0, "its connection was closed")


async def test_there_is_a_most_of_streams(master: Master, podman: PodmanEnd) -> None:
    podman.program = patient
    names = tuple(f"c{number}" for number in range(MAX_SESSIONS // MAX_CONTAINER_COMMANDS + 1))
    master.ready(web(*names))
    async with contextlib.AsyncExitStack() as stack:
        for number in range(MAX_SESSIONS):
            query = (*EXEC, ("container", names[number % len(names)]))
            await stack.enter_async_context(opened(master, query=query))
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stack.enter_async_context(opened(master))
        assert refused.value.status == 429
        assert (await master.get(POD))[0] == 200
    async with opened(master):
        await eventually(lambda: podman.running == 1, "there is room again")


async def test_there_is_a_most_of_commands_in_a_container(master: Master, podman: PodmanEnd) -> None:
    podman.program = patient
    master.ready(web("app", "side"))
    app, side = ((*EXEC, ("container", name)) for name in ("app", "side"))
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(opened(master, query=app)) for _ in range(MAX_CONTAINER_COMMANDS)]
        words = f"too many commands in container app at once: at most {MAX_CONTAINER_COMMANDS}"
        assert await refusal(master, "exec", *app) == (429, words)
        await stack.enter_async_context(opened(master, query=side))
        clients[0].go()
        for _ in range(100):
            with contextlib.suppress(aiohttp.WSServerHandshakeError):
                await stack.enter_async_context(opened(master, query=app))
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail("there is no room again")


# --- what ends it early ------------------------------------------------------------------------------------------


@pytest.fixture
def command() -> Iterator[subprocess.Popen[bytes]]:
    """A process in a session of its own, with a child that it does not wait for and that ignores what is no SIGKILL."""
    script = "trap '' HUP TERM; sleep 1000 & exec sleep 1000"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.DEVNULL) as process:
        yield process
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("way", ["gone", "stopping", "broken off"])
async def test_a_command_ends_with_its_stream(
    master: Master, podman: PodmanEnd, command: subprocess.Popen[bytes], way: str
) -> None:
    never = asyncio.Event()  # held here: a task that waits for what nobody else has is the collector's

    async def wait(process: Process) -> int:
        if way == "broken off":
            await process.say_raw(b"\x01\x00\x00\x00\x00\x00\x00\x09torn")
            process.writer.close()
        await never.wait()
        return 0

    podman.program, podman.pid = wait, command.pid
    master.ready(web())
    async with opened(master) as client:
        await eventually(lambda: podman.running == 1, "it runs")
        if way == "gone":
            client.go()
        elif way == "stopping":
            master.feed(Shutdown())
        await eventually(lambda: command.poll() == -signal.SIGKILL, "it was ended")

        def left() -> list[int]:
            return [pid for pid in procfs.pids() if procfs.session_of(pid) == command.pid and procfs.is_alive(pid)]

        await eventually(lambda: not left(), "its session was ended")


async def test_a_command_that_ends_by_itself_leaves_what_it_has_started(
    master: Master, podman: PodmanEnd, command: subprocess.Popen[bytes]
) -> None:
    podman.pid = command.pid
    master.ready(web())
    async with opened(master) as client:
        _, status = await client.rest()
    assert status is not None
    assert status.exit_code() == 0
    assert command.poll() is None


async def test_one_that_cannot_be_ended_is_told(
    master: Master, podman: PodmanEnd, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Podman does not say whether it runs."""
    monkeypatch.setattr("workers.api_server.streams.remote_command.END_POLLS", 2)
    podman.program, podman.pid = deaf, 0
    master.ready(web())
    async with opened(master) as client:
        await eventually(lambda: podman.running == 1, "it runs")
        client.go()
        await eventually(lambda: "a command whose client has gone may go on" in caplog.text, "it is told")


async def test_a_client_that_goes_ends_the_input(master: Master, podman: PodmanEnd) -> None:
    ended = asyncio.Event()

    async def wait(process: Process) -> int:
        with contextlib.suppress(ConnectionError):
            await process.input.read()
        ended.set()
        return 0

    podman.program = wait
    master.ready(web())
    async with opened(master) as client:
        await eventually(lambda: podman.running == 1, "it runs")
        client.go()
    async with asyncio.timeout(DEADLINE_S):
        await ended.wait()


async def test_output_that_breaks_off_is_no_exit_code(master: Master, podman: PodmanEnd) -> None:
    async def torn(process: Process) -> int:
        await process.say_raw(b"\x01\x00\x00\x00\x00\x00\x00\x09torn")
        return 0

    podman.program = torn
    master.ready(web())
    async with opened(master) as client:
        shown, status = await client.rest()
    assert shown == {Channel.STDOUT: b"torn"}
    assert status is not None
    assert status.exit_code() is None
    assert "broke off" in status.message


async def test_a_podman_that_goes_is_told(master: Master, tmp_path: Path) -> None:
    master.ready(web())
    async with podman_end(tmp_path / PODMAN_SOCKET) as podman:

        async def leave(process: Process) -> int:
            await process.input.read(1)
            (tmp_path / PODMAN_SOCKET).unlink()
            return 0

        podman.program = leave
        async with opened(master) as client:
            await client.channels.send(Channel.STDIN, b"x")
            _, status = await client.rest()
    assert status is not None
    assert status.exit_code() is None
    assert status.message.startswith("error executing command in container app: inspect exec")


async def test_the_end_of_the_api_server_is_told(master: Master, podman: PodmanEnd) -> None:
    podman.program = deaf
    master.ready(web())
    async with opened(master) as client:
        await eventually(lambda: podman.running == 1, "it runs")
        master.feed(Shutdown())
        _, status = await client.rest()
        assert status is not None
        assert status.message == STOPPING_WORDS
        assert await client.next() is None
        assert client.socket.close_code == aiohttp.WSCloseCode.GOING_AWAY
    await eventually(lambda: podman.running == 0, "its connection was closed")


# --- what is refused ---------------------------------------------------------------------------------------------


async def refusal(master: Master, path: str, *query: tuple[str, str], **headers: str) -> tuple[int, str]:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": V5,
    }
    wanted = {name: value for name, value in (upgrade | headers).items() if value}
    async with master.http.get(f"{POD}/{path}", params=query, headers=wanted) as response:
        return response.status, (await response.json())["message"]


async def test_what_is_asked_wrongly(master: Master, podman: PodmanEnd) -> None:
    master.ready(web("app", "side"))
    no_upgrade = (400, "Upgrade request required")
    assert await refusal(master, "exec", *EXEC, Upgrade="", Connection="") == no_upgrade
    assert await refusal(master, "exec", *EXEC, Upgrade="h2c") == no_upgrade
    async with master.http.post(f"{POD}/exec", params=EXEC) as response:
        assert (response.status, (await response.json())["message"]) == no_upgrade
    status, message = await refusal(master, "exec", *EXEC, **{"Sec-WebSocket-Protocol": "v3.channel.k8s.io"})
    assert status == 400
    assert message.startswith("unable to upgrade: unable to negotiate protocol")
    assert (await refusal(master, "exec", *EXEC[1:]))[1] == "you must specify at least one command for the container"
    assert (await refusal(master, "exec", EXEC[0]))[1] == "you must specify at least 1 of stdin, stdout, stderr"
    status, message = await refusal(master, "exec", *EXEC, ("container", "other"))
    assert (status, message) == (400, "container other is not valid for pod web")
    assert podman.started == []


async def test_what_does_not_run(master: Master, podman: PodmanEnd) -> None:
    waiting = container_status("app", state={"waiting": {"reason": "CrashLoopBackOff"}})
    status = status_of(phase="Running", containerStatuses=[waiting])
    master.ready(pod_changed(1, "web", status=status))
    words = (500, 'unable to upgrade connection: container not found ("app")')
    assert await refusal(master, "exec", *EXEC) == words
    assert await refusal(master, "attach", *EXEC[1:]) == words


async def test_a_container_that_has_just_ended_is_not_attached_to(master: Master, podman: PodmanEnd) -> None:
    """Podman would prepare it to start again."""
    podman.state = "exited"
    master.ready(web())
    assert (await refusal(master, "attach", *EXEC[1:]))[0] == 500
    assert podman.exit_code is None


async def test_no_podman(master: Master) -> None:
    master.ready(web())
    status, message = await refusal(master, "exec", *EXEC)
    assert status == 500
    assert message.startswith("error executing command in container app: create exec")


# --- what a client must not do -------------------------------------------------------------------------------------

HANDSHAKE = (
    f"GET {POD}/exec?{urlencode(EXEC)} HTTP/1.1\r\nHost: rootlet\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\n"
    f"Sec-WebSocket-Protocol: {V5}\r\n\r\n"
).encode()
UNMASKED = b"\x82\x02\x00x"
"""A binary frame for the standard input."""
PROTOCOL_ERROR = 1002
Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_frame_without_a_mask_closes_the_connection_with_1002(run: Run, tmp_path: Path) -> None:
    """On the agent's loop, too: its transports are of other types than the standard library's."""
    run(_send_without_a_mask(tmp_path))


async def _send_without_a_mask(directory: Path) -> None:
    async with api_server(directory) as master, podman_end(directory / PODMAN_SOCKET) as podman:
        podman.program = echo
        master.ready(web())
        reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
        async with asyncio.timeout(DEADLINE_S):
            writer.write(HANDSHAKE)
            assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
            writer.write(UNMASKED)
            rest = await reader.read()
        assert b"\x88" in rest
        assert PROTOCOL_ERROR.to_bytes(2, "big") in rest
        assert b"\x82\x02\x01x" not in rest  # nothing of it was echoed
        writer.close()


async def test_frames_before_the_answer_are_refused(master: Master, podman: PodmanEnd) -> None:
    podman.program = echo
    master.ready(web())
    reader, writer = await asyncio.open_unix_connection(str(master.socket_path))
    async with asyncio.timeout(DEADLINE_S):
        writer.write(HANDSHAKE + UNMASKED)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
        await reader.read()
    writer.close()
