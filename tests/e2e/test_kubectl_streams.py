"""The real kubectl against the whole agent and real Podman: exec, attach and port-forward, by each carrier."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.e2e.terminal import terminal
from tests.support.kubectl import DEADLINE_S, SPDY, WEBSOCKET, Kubectl, kubectl_at, needs_kubectl
from tests.support.variants import seldom

pytestmark = [pytest.mark.e2e, pytest.mark.podman, needs_kubectl]

LARGE_BYTES: Final = 100 * 1024 * 1024
MANY: Final = 50
ECHO: Final = 7000
NAMED: Final = 7001
CLOSED: Final = 7002
SERVE: Final = f"trap 'exit 0' TERM; busybox nc -ll -p {NAMED} -e echo named & busybox nc -ll -p {ECHO} -e cat & wait"
"""Echoes on one port, says one word on the other."""
by_each_carrier = pytest.mark.parametrize("carrier", [pytest.param(WEBSOCKET, id="WebSocket"), seldom(SPDY, id="SPDY")])
Carrier = Mapping[str, str]


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    shared = new_shared_agent()
    shared.start()
    shared.run(pod("web", container(script=SERVE)))
    return shared


@pytest.fixture
async def kubectl(agent: Agent, tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with kubectl_at(agent.socket, tmp_path) as found:
        yield found


@by_each_carrier
async def test_exec_with_input_and_exit_code(kubectl: Kubectl, carrier: Carrier) -> None:
    script = "cat; echo err >&2; exit 42"
    done = await kubectl.run("exec", "-i", "web", "--", "sh", "-c", script, data=b"in\n", carrier=carrier)
    assert done == (42, b"in\n", b"err\ncommand terminated with exit code 42\n")


@by_each_carrier
async def test_exec_in_a_terminal(kubectl: Kubectl, carrier: Carrier) -> None:
    variables = [f"{name}={value}" for name, value in kubectl.environment(carrier).items()]
    script = "until stty size | grep '31 97'; do sleep 0.1; done; read line; echo got $line; exit 7"
    words = ["env", *variables, *kubectl.command, "exec", "-it", "web", "--", "sh", "-c", script]

    def drive() -> int:
        with terminal(words) as screen:
            screen.until(b"31 97")
            screen.type(b"key\r")
            screen.until(b"got key")
            return screen.wait()

    assert await asyncio.to_thread(drive) == 7


@by_each_carrier
async def test_large_transfers_are_exact(kubectl: Kubectl, carrier: Carrier) -> None:
    data = os.urandom(LARGE_BYTES)
    code, out, _ = await kubectl.run("exec", "-i", "web", "--", "cat", data=data, carrier=carrier)
    assert code == 0
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


@by_each_carrier
async def test_attach_feeds_a_container_with_an_input(agent: Agent, kubectl: Kubectl, carrier: Carrier) -> None:
    name = "fed-spdy" if carrier is SPDY else "fed"
    agent.run(pod(name, container(stdin=True, script="read line; echo got $line; sleep 1"), restartPolicy="Never"))
    code, out, _ = await kubectl.run("attach", "-i", name, data=b"word\n", carrier=carrier)
    assert (code, out) == (0, b"got word\n")


@by_each_carrier
async def test_many_connections_at_once(kubectl: Kubectl, carrier: Carrier) -> None:
    async with kubectl.forwarding("web", ECHO, carrier) as found, asyncio.timeout(DEADLINE_S):
        ends = []
        for number in range(MANY):  # One after the other: the pod's server has a backlog of two.
            reader, writer = await found.connect()
            writer.write(b"%d\n" % number)
            assert await reader.readline() == b"%d\n" % number
            ends.append((reader, writer))

        async def finish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> bytes:
            writer.write(data)
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer

        sent = [b"%d" % number * 10_000 for number in range(MANY)]
        answers = await asyncio.gather(*(finish(*end, data) for end, data in zip(ends, sent, strict=True)))
        assert [len(answer) for answer in answers] == [len(data) for data in sent]
        assert answers == sent


@by_each_carrier
async def test_forwarded_bytes_are_exact(kubectl: Kubectl, carrier: Carrier) -> None:
    data = os.urandom(LARGE_BYTES)
    async with kubectl.forwarding("web", ECHO, carrier) as found:
        answer = await found.ask(data)
    assert hashlib.sha256(answer).digest() == hashlib.sha256(data).digest()


@by_each_carrier
async def test_the_pod_may_end_first(kubectl: Kubectl, carrier: Carrier) -> None:
    async with kubectl.forwarding("web", NAMED, carrier) as found:
        for _ in range(2):
            reader, writer = await found.connect()
            async with asyncio.timeout(DEADLINE_S):
                assert await reader.read() == b"named\n"
            writer.close()
        assert found.process.returncode is None


@by_each_carrier
async def test_a_port_on_which_nobody_listens(kubectl: Kubectl, carrier: Carrier) -> None:
    async with kubectl.forwarding("web", CLOSED, carrier) as found:
        reader, writer = await found.connect()
        assert await reader.read() == b""
        writer.close()
        _, err = await found.process.communicate()
    assert found.process.returncode == 1
    assert f"error forwarding port {CLOSED} to pod web: Connection refused" in err.decode()
