"""Host ports of pods on a bridge through pasta (`podman.portForwarder`), on real Podman 6.1. Others refuse it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ipc.k8s.network.network_programs import version_numbers
from supervisor.config.port_forwarder import OLDEST_BY_PASTA, find_pesto, forwarder_problem
from tests.e2e.agent import Agent, Json
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.e2e.status_observer import INFRA
from tests.support import neighbour
from tests.support.podman_service import PodmanService, podman, podman_version
from tests.support.servers.local_servers import unused_port

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

PORT: Final = 8000
LEAVES_S: Final = 20.0
ANSWER: Final = f"while true; do echo hello | nc -l -p {PORT}; done"
TOLD: Final = """
import select, socket, sys
listening = []
for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    stream, datagrams = socket.socket(family, socket.SOCK_STREAM), socket.socket(family, socket.SOCK_DGRAM)
    for each in (stream, datagrams):
        if family == socket.AF_INET6:
            each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        each.bind((address, int(sys.argv[1])))
    stream.listen()
    listening += [stream, datagrams]
print("up", flush=True)
while sys.stdin not in (ready := select.select([*listening, sys.stdin], [], [])[0]):
    for each in ready:
        if each.type == socket.SOCK_STREAM:
            client, peer = each.accept()
            client.sendall(peer[0].encode())
            client.close()
        else:
            each.sendto((peer := each.recvfrom(100)[1])[0].encode(), peer)
"""
"""A server over TCP and UDP, in both families, that tells a client its address. It ends with its standard input."""


@pytest.fixture
def by_pasta(podman_service: PodmanService, new_agent: NewAgent) -> Iterator[Agent]:
    """An agent whose pods are on a bridge of its own with both families, and have their ports through pasta."""
    if problem := forwarder_problem("pasta", version_numbers(podman_version()), find_pesto({}, os.environ)):
        pytest.skip(problem)
    name = f"{podman_service.new_instance()}-bridge"
    podman("network", "create", "--ipv6", name)
    try:
        network = {"mode": "bridge", "bridge": name}
        made = new_agent(podNetwork=network, podman={"service": "own", "portForwarder": "pasta"})
        made.start()
        yield made
        made.stop_pods()
    finally:
        podman("network", "rm", "--force", name)


def published(name: str, host_port: int, *, script: str = ANSWER, **fields: Any) -> Json:
    ports = [{"containerPort": PORT, "hostPort": host_port, "protocol": each} for each in ("TCP", "UDP")]
    return pod(name, container(script=script, ports=ports), terminationGracePeriodSeconds=1, **fields)


def said_by(number: int) -> bytes:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", number), 2.0) as connection:
        return connection.recv(100)
    return b""


def is_free(number: int) -> bool:
    """Whether nobody has the port."""
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(("0.0.0.0", number))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def telling(agent: Agent, name: str) -> Iterator[None]:
    """A server in the pod's network: the test image has none that tells its clients' addresses."""
    pid = agent.eye.container(name, INFRA).pid
    command = ["podman", "unshare", "nsenter", f"--target={pid}", "--net", sys.executable, "-c", TOLD, str(PORT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        try:
            yield
        finally:
            server.stdin.close()
            assert server.wait(LEAVES_S) == 0


def test_podman_without_it_is_told_before_anything_starts(new_agent: NewAgent) -> None:
    if version_numbers(podman_version()) >= OLDEST_BY_PASTA:
        pytest.skip(f"Podman {podman_version()} has it")
    agent = new_agent(podman={"service": "own", "portForwarder": "pasta"})
    words = f"podman.portForwarder: pasta needs Podman 6.1 or newer, and this is {podman_version()}"
    assert agent.spawn().wait(LEAVES_S) != 0
    assert words in agent.log.read_text()
    checked = agent.cli("doctor", "--config", str(agent.config))
    assert checked.code == 1
    assert words.partition(": ")[2] in checked.out


def test_ports_live_as_long_as_their_pod(by_pasta: Agent) -> None:
    """They outlive an edit, a crash of the container, the agent and Podman's service, and go with the pod."""
    agent, number = by_pasta, unused_port()
    agent.run(published("web", number))
    agent.until(lambda: said_by(number) == b"hello\n", "its port leads to it")
    os.kill(agent.eye.container("web", "main").pid, signal.SIGKILL)
    agent.until(lambda: agent.pods()["web"]["status"]["containerStatuses"][0]["restartCount"] == 1, "it is restarted")
    agent.until(lambda: said_by(number) == b"hello\n", "the port leads to the next container")
    before = agent.eye.container("web", INFRA).pid
    agent.write(published("web", number, hostname="another"))
    agent.until(lambda: before not in {c.pid for c in agent.eye.containers("web", infra=True)}, "its sandbox ends")
    agent.until_ready(["web"])
    agent.until(lambda: said_by(number) == b"hello\n", "the port leads to the next sandbox")
    agent.kill_and_recover("master")
    agent.until(lambda: said_by(number) == b"hello\n", "it has outlived the agent and its service")
    agent.remove("web")
    agent.until_gone(["web"])
    agent.until(lambda: is_free(number), "nobody has the port")


def test_a_port_that_another_program_has_is_told_and_waited_for(by_pasta: Agent) -> None:
    agent = by_pasta
    with socket.socket() as stranger:
        stranger.bind(("0.0.0.0", 0))
        stranger.listen()
        number = stranger.getsockname()[1]
        agent.write(published("waits", number))
        agent.until(lambda: "FailedCreatePodSandBox" in agent.reasons("waits"), "it is told")
        why = agent.reasons("waits")["FailedCreatePodSandBox"]
        assert why == f"Failed to create pod sandbox: listen tcp :{number}: bind: address already in use"
    agent.until_ready(["waits"])
    agent.until(lambda: said_by(number) == b"hello\n", "its port leads to it")


@pytest.mark.skipif(neighbour.VARIABLE not in os.environ, reason="needs another machine: tests/hosts/neighbour")
@pytest.mark.parametrize("source", ["198.51.100.2", "203.0.113.5", "2001:db8:1::2", "2001:db8:5::5"])
@pytest.mark.parametrize("type", ["tcp", "udp"])
def test_a_server_sees_the_address_of_another_machine(by_pasta: Agent, type: str, source: str) -> None:
    """On the same link and behind it, in both families."""
    agent, number = by_pasta, unused_port()
    agent.run(published("web", number, script="trap 'exit 0' TERM; while true; do sleep 1; done"))
    host = "2001:db8:1::1" if ":" in source else "198.51.100.1"
    with telling(agent, "web"):
        assert neighbour.ask(type, source, host, number) == source
