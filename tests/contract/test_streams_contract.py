"""Calls of the API server's own client and lists of images, on the simulated service and on Podman: both clients ask
the endpoints of one table (`ipc.host.libpod.endpoints`) and must be answered the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ipc.host.libpod.answers import ExecSession
from ipc.link.wire.stream_channels import Channel, TerminalSize
from tests.contract.target import DEADLINE_S, PodmanTarget, ServerTarget, container_spec, pod_spec, running
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.image_list import list_images
from workers.libpod.streams import PodmanStreams, ProcessStreams

Served = ServerTarget | PodmanTarget
"""A target on a socket."""
SIZE = TerminalSize(width=80, height=24)
UNKNOWN = "0a" * 32
ON_PODMAN = pytest.param("podman", marks=pytest.mark.podman)
on_both = pytest.mark.parametrize("target", ["server", ON_PODMAN], indirect=True)
on_podman = pytest.mark.parametrize("target", [ON_PODMAN], indirect=True)


@pytest.fixture
def served(target: object) -> Served:
    assert isinstance(target, Served)
    return target


def streams_of(served: Served) -> PodmanStreams:
    return PodmanStreams(served.socket)


async def output_of(streams: ProcessStreams) -> dict[Channel, bytes]:
    """All of it, by stream."""
    found: dict[Channel, bytes] = {}
    try:
        async with asyncio.timeout(DEADLINE_S):
            async for piece in streams.output():
                found[piece.channel] = found.get(piece.channel, b"") + piece.data
    finally:
        streams.close()
    return found


async def ended(asked: PodmanStreams, session: str) -> ExecSession:
    async with asyncio.timeout(DEADLINE_S):
        while (state := await asked.exec_state(session)).running:  # noqa: ASYNC110 - another program's state
            await asyncio.sleep(0.02)
    return state


@on_both
async def test_both_clients_see_the_same_container(served: Served) -> None:
    container = await running(served)
    seen = await streams_of(served).inspect(container.id)
    assert (seen.id, seen.name, seen.state, seen.pid) == (container.id, container.name, "running", container.pid)
    assert (seen.labels, seen.image_id, seen.started_at) == (container.labels, container.image_id, container.started_at)


@on_both
async def test_a_command_has_a_session_an_output_and_an_exit_code(served: Served) -> None:
    container, asked = await running(served), streams_of(served)
    session = await asked.create_exec(container.id, ["sh", "-c", "exit 3"], stdin=False, tty=False)
    output = await output_of(await asked.start_exec(session, tty=False, size=None))
    by_the_other = await served.runtime.exec_container(container.id, ["sh", "-c", "exit 3"], DEADLINE_S)
    assert (b"".join(output.values()), (await ended(asked, session)).exit_code) == (b"", 3)
    assert (by_the_other.output, by_the_other.exit_code) == (b"", 3)


@pytest.mark.parametrize(
    "ask",
    [
        lambda asked: asked.inspect(UNKNOWN),
        lambda asked: asked.exec_state(UNKNOWN),
        lambda asked: asked.create_exec(UNKNOWN, ["true"], stdin=False, tty=False),
    ],
    ids=["inspect", "exec_state", "create_exec"],
)
@on_both
async def test_unknown_ids_are_not_found(served: Served, ask: Callable[[PodmanStreams], Awaitable[object]]) -> None:
    with pytest.raises(RuntimeCallError) as caught:
        await ask(streams_of(served))
    assert caught.value.kind is ErrorKind.NOT_FOUND


@on_both
async def test_a_container_that_does_not_run_takes_no_command(served: Served) -> None:
    pod = await served.runtime.create_pod(pod_spec(served))
    id = await served.runtime.create_container(container_spec(served, pod))
    with pytest.raises(RuntimeCallError) as caught:
        await streams_of(served).create_exec(id, ["true"], stdin=False, tty=False)
    assert caught.value.kind is ErrorKind.WRONG_STATE


@on_both
async def test_all_clients_list_the_same_image(served: Served) -> None:
    known = await served.runtime.inspect_image(served.image)
    assert known is not None
    for images in (await streams_of(served).images(), await list_images(served.socket)):
        (stored,) = (image for image in images if image.id == known.id)
        (listed,) = (image for image in await served.runtime.list_images() if image.id == known.id)
        assert served.image in stored.repo_tags
        assert set(stored.repo_tags) <= set(listed.names)
        assert stored.size == listed.size_bytes
        assert set(stored.repo_digests) <= set(listed.digests)


@on_both
async def test_removing_an_image_that_is_gone_is_no_error(served: Served) -> None:
    """By podman-py, through the same table."""
    known = await served.runtime.inspect_image(served.image)
    assert known is not None
    listed = next(image for image in await served.runtime.list_images() if image.id == known.id)
    await served.runtime.remove_image(type(listed)(id=UNKNOWN, names=("localhost/no-such-image:1",)))
    assert await served.runtime.inspect_image(served.image) == known


@on_podman
async def test_a_terminal_is_one_and_a_path_has_its_archive(served: Served) -> None:
    """Podman alone: the simulated service has no terminals and no files."""
    asked = streams_of(served)
    container = await running(served)
    session = await asked.create_exec(container.id, ["sh", "-c", "echo up; echo no >&2"], stdin=False, tty=False)
    output = await output_of(await asked.start_exec(session, tty=False, size=None))
    assert output == {Channel.STDOUT: b"up\n", Channel.STDERR: b"no\n"}
    session = await asked.create_exec(container.id, ["sh", "-c", "test -t 1 && echo terminal"], stdin=False, tty=True)
    output = await output_of(await asked.start_exec(session, tty=True, size=SIZE))
    assert output == {Channel.STDOUT: b"terminal\r\n"}
    session = await asked.create_exec(container.id, ["sleep", "1000"], stdin=False, tty=True)
    sleeping = await asked.start_exec(session, tty=True, size=SIZE)
    await asked.resize_exec(session, SIZE)
    assert (await asked.exec_state(session)).pid
    sleeping.close()
    assert await asked.path_stat(container.id, "/etc/passwd")
    async with asked.archive(container.id, "/etc/passwd") as pieces:
        assert b"root" in b"".join([piece async for piece in pieces])
    with pytest.raises(RuntimeCallError) as caught:
        await asked.path_stat(container.id, "/no/such")
    assert caught.value.kind is ErrorKind.NOT_FOUND
