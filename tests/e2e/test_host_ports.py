"""Ports of the host that pods publish, and those that cannot be had."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.agent import Agent, Json
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.status_observer import INFRA
from tests.support.servers.local_servers import unused_port

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

ANSWER = "while true; do echo hello | nc {options} -l -p {port}; done"

ECHO = """
import select, socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("0.0.0.0", int(sys.argv[1])))
    while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
        words, whose = server.recvfrom(100)
        server.sendto(words, whose)
"""
"""A server that ends with its standard input: no signal reaches what `podman unshare` has started."""
ECHO_LEAVES_S = 20.0


def port(number: int, host_port: int, **fields: str) -> Json:
    return {"containerPort": number, "hostPort": host_port, **fields}


def said_by(address: str, number: int) -> bytes:
    """First words of a TCP server; nothing when there is none."""
    with contextlib.suppress(OSError), socket.create_connection((address, number), 2.0) as connection:
        return connection.recv(100)
    return b""


def echoed_by(number: int) -> bytes:
    """Answer over UDP from the host's loopback; nothing when nothing comes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client, contextlib.suppress(OSError):
        client.settimeout(1.0)
        client.connect(("127.0.0.1", number))
        client.send(b"echo")
        return client.recv(100)
    return b""


@contextlib.contextmanager
def echoing(pid: int, number: int) -> Iterator[None]:
    """A UDP server in the network of that process: the test image has none."""
    command = ["podman", "unshare", "nsenter", f"--target={pid}", "--net", sys.executable, "-c", ECHO, str(number)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert server.stdin is not None
    try:
        yield
    finally:
        server.stdin.close()
        assert server.wait(ECHO_LEAVES_S) == 0


@contextlib.contextmanager
def taken() -> Iterator[int]:
    """A port of the host on which another program listens."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


def test_ports_are_published(agent: Agent) -> None:
    everywhere, loopback, datagrams = unused_port(), unused_port(), unused_port(socket.SOCK_DGRAM)
    tcp = container("tcp", ANSWER.format(options="", port=8000), ports=[port(8000, everywhere)])
    local = container(
        "local", ANSWER.format(options="", port=8001), ports=[port(8001, loopback, hostIP="127.0.0.1", protocol="TCP")]
    )
    udp = container("udp", ports=[port(8002, datagrams, protocol="UDP")])
    told = container("told", STAY, ports=[{"containerPort": 9, "protocol": "SCTP"}])
    agent.run(pod("published", tcp, local, udp, told))
    host_ip = agent.pods()["published"]["status"]["hostIP"]
    agent.until(lambda: said_by("127.0.0.1", everywhere) == b"hello\n", "the host's loopback reaches it")
    agent.until(lambda: said_by(host_ip, everywhere) == b"hello\n", "its address reaches it")
    agent.until(lambda: said_by("127.0.0.1", loopback) == b"hello\n", "the loopback alone reaches it")
    assert said_by(host_ip, loopback) == b""
    with echoing(agent.eye.container("published", INFRA).pid, 8002):
        agent.until(lambda: echoed_by(datagrams) == b"echo", "datagrams reach it")


def test_ports_that_cannot_be_had(agent: Agent) -> None:
    held = unused_port()
    agent.run(pod("holder", container(ports=[port(80, held)])))
    refused = {
        "privileged": (port(80, 80), "HostPortForbidden", "host port 0.0.0.0:80/TCP cannot be had: ports below 1024"),
        "sctp": (port(80, 8080, protocol="SCTP"), "HostPortForbidden", "rootless Podman forwards no SCTP"),
        "second": (port(80, held), "NodePorts", "is held by default/holder)"),
    }
    agent.write(*(pod(name, container(ports=[of])) for name, (of, _, _) in refused.items()))
    agent.until(lambda: refused.keys() <= agent.pods().keys(), "all of them were read")
    for name, (_, reason, words) in refused.items():
        status = agent.pods()[name]["status"]
        assert (status["phase"], status["reason"]) == ("Failed", reason)
        assert words in status["message"]
        assert words in agent.reasons(name)[reason]
    assert {c.pod for c in agent.eye.containers(infra=True)}.isdisjoint(refused)


def test_a_port_that_another_program_has(agent: Agent) -> None:
    with taken() as number:
        agent.write(pod("waits", container(ports=[port(80, number, hostIP="127.0.0.1")])))
        agent.until(lambda: "FailedCreatePodSandBox" in agent.reasons("waits"), "it is told")
        why = agent.reasons("waits")["FailedCreatePodSandBox"]
        assert "address already in use" in why.lower()
        assert str(number) in why
    agent.until_ready(["waits"])
