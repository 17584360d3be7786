"""The real kubectl against our API server, with Podman's end played: what it makes of our streams, by each carrier."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from ipc.k8s.kubecontainer.pod_status import SandboxState, SandboxStatus
from tests.e2e.terminal import SIZE, terminal
from tests.integration.workers.api_server.test_exec_streams import echo, web
from tests.integration.workers.api_server.test_port_forward import LocalDialer, PodEnd, listening, received, send
from tests.support.api_server import api_server
from tests.support.kubectl import SPDY, WEBSOCKET, Kubectl, kubectl_at, needs_kubectl
from tests.support.podman_streams import PodmanEnd, Process

pytestmark = needs_kubectl

LARGE_BYTES: Final = 100 * 1024 * 1024
MANY: Final = 50
SANDBOX: Final = SandboxStatus(
    id="s", name="s", infra_id="infra", attempt=0, state=SandboxState.READY, host_network=True
)
by_each_carrier = pytest.mark.parametrize("carrier", [WEBSOCKET, SPDY], ids=["WebSocket", "SPDY"])
Carrier = Mapping[str, str]


@pytest.fixture
async def kubectl(tmp_path: Path, podman: PodmanEnd) -> AsyncIterator[Kubectl]:
    async with api_server(tmp_path, dialer=LocalDialer()) as master, kubectl_at(master.socket_path, tmp_path) as found:
        master.ready(web(sandbox=SANDBOX))
        yield found


@pytest.fixture
def pod_end() -> Any:
    with listening(socket.AF_INET, "127.0.0.1") as end:
        yield end


# --- exec and attach -----------------------------------------------------------------------------------------------


@by_each_carrier
async def test_exec_with_an_input_that_ends_and_an_exit_code(
    kubectl: Kubectl, podman: PodmanEnd, carrier: Carrier
) -> None:
    podman.program = echo
    done = await kubectl.run("exec", "-i", "web", "--", "cmd", data=b"hello\n", carrier=carrier)
    assert done == (3, b"hello\n", b"endcommand terminated with exit code 3\n")
    assert kubectl.upgrades[0].startswith("v5.channel.k8s.io")
    assert len(kubectl.upgrades) == (5 if carrier is SPDY else 1)


@by_each_carrier
async def test_exec_in_a_terminal(kubectl: Kubectl, podman: PodmanEnd, carrier: Carrier) -> None:
    async def one_key(process: Process) -> int:
        await process.say_raw(b"ready")
        await process.say_raw(b"got " + await process.input.readexactly(1))
        return 5

    variables = [f"{name}={value}" for name, value in kubectl.environment(carrier).items()]

    def drive() -> int:
        with terminal(["env", *variables, *kubectl.command, "exec", "-it", "web", "--", "cmd"]) as screen:
            screen.until(b"ready")
            screen.type(b"\x03")
            screen.until(b"got \x03")
            return screen.wait()

    podman.program = one_key
    assert await asyncio.to_thread(drive) == 5
    assert podman.started == [{"Detach": False, "Tty": True, "w": SIZE[1], "h": SIZE[0]}]


@by_each_carrier
async def test_large_transfers_are_exact(kubectl: Kubectl, podman: PodmanEnd, carrier: Carrier) -> None:
    podman.program = echo
    data = os.urandom(LARGE_BYTES)
    code, out, err = await kubectl.run("exec", "-i", "web", "--", "cmd", data=data, carrier=carrier)
    assert (code, err) == (3, b"endcommand terminated with exit code 3\n")
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


@by_each_carrier
async def test_attach(kubectl: Kubectl, podman: PodmanEnd, carrier: Carrier) -> None:
    async def talk(process: Process) -> int:
        await process.say(b"out\n")
        return 0

    podman.program = talk
    code, out, _ = await kubectl.run("attach", "web", carrier=carrier)
    assert (code, out) == (0, b"out\n")


@by_each_carrier
async def test_what_is_refused_is_said(kubectl: Kubectl, carrier: Carrier) -> None:
    code, _, err = await kubectl.run("exec", "web", "-c", "other", "--", "cmd", carrier=carrier)
    assert code == 1
    assert b"container other is not valid for pod web" in err


# --- port-forward --------------------------------------------------------------------------------------------------


async def serve_echo(end: PodEnd, connections: int) -> None:
    async def serve(pod: socket.socket) -> None:
        with pod:
            while piece := await received(pod):
                await send(pod, piece)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(connections):
            tasks.create_task(serve(await end.accept()))


@by_each_carrier
async def test_many_connections_at_once(kubectl: Kubectl, pod_end: PodEnd, carrier: Carrier) -> None:
    async with kubectl.forwarding("web", pod_end.port, carrier) as found:
        serving = asyncio.create_task(serve_echo(pod_end, MANY))
        answers = await asyncio.gather(*(found.ask(b"%d" % number * 10_000) for number in range(MANY)))
        await serving
    assert answers == [b"%d" % number * 10_000 for number in range(MANY)]
    wanted = "SPDY/3.1+portforward.k8s.io" if carrier is WEBSOCKET else "portforward.k8s.io"
    assert kubectl.upgrades == [wanted]


@by_each_carrier
async def test_forwarded_bytes_are_exact(kubectl: Kubectl, pod_end: PodEnd, carrier: Carrier) -> None:
    data = os.urandom(LARGE_BYTES)
    async with kubectl.forwarding("web", pod_end.port, carrier) as found:
        serving = asyncio.create_task(serve_echo(pod_end, 1))
        answer = await found.ask(data)
        await serving
    assert hashlib.sha256(answer).digest() == hashlib.sha256(data).digest()


@by_each_carrier
async def test_the_pod_may_end_first(kubectl: Kubectl, pod_end: PodEnd, carrier: Carrier) -> None:
    async with kubectl.forwarding("web", pod_end.port, carrier) as found:
        for _ in range(2):
            reader, writer = await found.connect()
            with await pod_end.accept() as pod:
                await send(pod, b"bye")
            assert await reader.read() == b"bye"
            writer.close()
        assert found.process.returncode is None


@by_each_carrier
async def test_nobody_listens(kubectl: Kubectl, carrier: Carrier) -> None:
    """kubectl gives up for good, as with a kubelet."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    async with kubectl.forwarding("web", port, carrier) as found:
        reader, writer = await found.connect()
        assert await reader.read() == b""
        writer.close()
        _, err = await found.process.communicate()
    assert found.process.returncode == 1
    assert f"error forwarding port {port} to pod web: Connection refused" in err.decode()
    assert "error: lost connection to pod" in err.decode()
