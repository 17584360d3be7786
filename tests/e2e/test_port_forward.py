"""`rootlet port-forward` into real pods, on the networks that rootless Podman gives them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import psutil
import pytest

from tests.e2e.agent import CLI_DEADLINE_S, Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod

pytestmark = [pytest.mark.e2e, pytest.mark.podman]

LARGE_BYTES: Final = 100 * 1024 * 1024
MANY: Final = 50
OTHERS: Final = 3
"""Descriptors of the server's that may have gone meanwhile: other clients' connections."""
DEADLINE_S: Final = 60.0
ECHO: Final = 7000
NAMED: Final = 7001
CLOSED: Final = 7002
SERVE: Final = f"trap 'exit 0' TERM; busybox nc -ll -p {NAMED} -e echo named & busybox nc -ll -p {ECHO} -e cat & wait"
"""Echoes on one port, says one word on the other."""
PORTS: Final = [{"containerPort": NAMED, "name": "word"}, {"containerPort": 53, "name": "dns", "protocol": "UDP"}]


@pytest.fixture(scope="module")
def agent(new_shared_agent: NewAgent) -> Agent:
    shared = new_shared_agent()
    shared.start()
    shared.run(pod("web", container(script=SERVE, ports=PORTS)))
    return shared


class Forwarding:
    """A running command and what it has said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def port(self) -> int:
        """The port on 127.0.0.1 that it tells first; the line about ::1 that may follow is read with the next ones."""
        words = self.line().split()
        assert words[:2] == ["Forwarding", "from"], words
        return int(words[2].rpartition(":")[2])

    def connect(self, port: int) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        connection.settimeout(DEADLINE_S)
        return connection


@contextlib.contextmanager
def forwarding(agent: Agent, *arguments: str) -> Iterator[Forwarding]:
    command = agent.command("port-forward", *arguments)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        try:
            yield Forwarding(process)
        finally:
            process.kill()


def read_all(connection: socket.socket) -> bytes:
    pieces = []
    while piece := connection.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


def ask(found: Forwarding, port: int, data: bytes) -> bytes:
    """Send, end our side, and read to the end."""
    with found.connect(port) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return read_all(connection)


def test_connections_go_through_and_are_told(agent: Agent) -> None:
    with forwarding(agent, "web", f":{ECHO}", "--address", "127.0.0.1") as found:
        port = found.port()
        for word in (b"one", b"two"):
            assert ask(found, port, word) == word
            assert found.line() == f"Handling connection for {port}"
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(CLI_DEADLINE_S) == 0
        with pytest.raises(ConnectionRefusedError):
            found.connect(port)


def test_several_ports_by_number_and_by_name(agent: Agent) -> None:
    with forwarding(agent, "pod/web", "--address", "127.0.0.1", f":{ECHO}", ":word") as found:
        echo, named = found.port(), found.port()
        assert ask(found, named, b"") == b"named\n"
        assert ask(found, echo, b"x") == b"x"


def test_both_loopback_addresses_have_the_same_port(agent: Agent) -> None:
    with forwarding(agent, "web", f":{ECHO}") as found:
        port = found.port()
        assert ask(found, port, b"four") == b"four"
        if found.line() == f"Forwarding from [::1]:{port} -> {ECHO}":
            with socket.create_connection(("::1", port), DEADLINE_S) as connection:
                connection.sendall(b"six")
                connection.shutdown(socket.SHUT_WR)
                assert read_all(connection) == b"six"


def test_large_transfers_are_exact_both_ways(agent: Agent) -> None:
    data = os.urandom(LARGE_BYTES)
    digest = hashlib.sha256()
    with (
        forwarding(agent, "web", "--address", "127.0.0.1", f":{ECHO}") as found,
        found.connect(found.port()) as connection,
    ):

        def give() -> None:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)

        giving = threading.Thread(target=give)
        giving.start()
        while piece := connection.recv(1 << 16):
            digest.update(piece)
        giving.join()
    assert digest.digest() == hashlib.sha256(data).digest()


def test_many_at_once_leave_nothing(agent: Agent) -> None:
    server = psutil.Process(agent.processes()["api"])
    with forwarding(agent, "web", "--address", "127.0.0.1", f":{ECHO}") as found:
        port = found.port()
        assert ask(found, port, b"first") == b"first"
        command = psutil.Process(found.process.pid)
        agent.until(lambda: len(command.net_connections("tcp")) == 1, "it only listens")
        before = server.num_fds(), command.num_fds()
        with contextlib.ExitStack() as stack:
            # One after the other: the pod's server has a backlog of two.
            connections = [stack.enter_context(found.connect(port)) for _ in range(MANY)]
            for number, connection in enumerate(connections):
                connection.sendall(b"%d\n" % number)
                assert connection.recv(100) == b"%d\n" % number
            assert server.num_fds() >= before[0] + 2 * MANY - OTHERS

            def finish(connection: socket.socket) -> bytes:
                connection.sendall(bytes(LARGE_BYTES // MANY // 10))
                connection.shutdown(socket.SHUT_WR)
                return read_all(connection)

            with ThreadPoolExecutor(MANY) as threads:
                assert {len(data) for data in threads.map(finish, connections)} == {LARGE_BYTES // MANY // 10}
        agent.until(lambda: server.num_fds() <= before[0] and command.num_fds() <= before[1], "no descriptor is left")


def test_a_port_on_which_nobody_listens(agent: Agent) -> None:
    with forwarding(agent, "web", "--address", "127.0.0.1", f":{CLOSED}", f":{ECHO}") as found:
        closed, echo = found.port(), found.port()
        with pytest.raises(ConnectionResetError):
            ask(found, closed, b"x")
        assert ask(found, echo, b"still there") == b"still there"
        found.process.send_signal(signal.SIGINT)
        _, err = found.process.communicate(timeout=CLI_DEADLINE_S)
    words = f"error forwarding port {CLOSED} to pod web: Connection refused"
    assert err == f"error: an error occurred forwarding {closed} -> {CLOSED}: {words}\n"


def test_a_container_that_restarts(agent: Agent) -> None:
    agent.run(pod("again", container(script=SERVE)))
    with forwarding(agent, "again", "--address", "127.0.0.1", f":{ECHO}") as found:
        port = found.port()
        with found.connect(port) as connection:
            connection.sendall(b"before")
            assert connection.recv(100) == b"before"
            agent.cli("exec", "again", "--", "kill", "-TERM", "1")
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b""

        def answers() -> bool:
            with contextlib.suppress(ConnectionResetError):
                return ask(found, port, b"after") == b"after"
            return False

        agent.until(answers, "the container that came after it answers")
        assert found.process.poll() is None


def test_a_pod_that_goes_ends_the_command(agent: Agent) -> None:
    agent.run(pod("leaves", container(script=SERVE)))
    with forwarding(agent, "leaves", "--address", "127.0.0.1", f":{ECHO}") as found:
        port = found.port()
        with found.connect(port) as connection:
            connection.sendall(b"x")
            assert connection.recv(100) == b"x"
            agent.remove("leaves")
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b""
            assert found.process.wait(CLI_DEADLINE_S) == 1
        assert found.process.stderr is not None
        assert found.process.stderr.read().splitlines()[-1] == "error: lost connection to pod"


def test_the_api_servers_death_ends_connections_and_not_the_command(agent: Agent) -> None:
    with forwarding(agent, "web", "--address", "127.0.0.1", f":{ECHO}") as found:
        port = found.port()
        with found.connect(port) as connection:
            connection.sendall(b"x")
            assert connection.recv(100) == b"x"
            agent.kill_and_recover("api")
            with pytest.raises(ConnectionResetError):
                connection.recv(100)
        assert ask(found, port, b"again") == b"again"
        found.process.send_signal(signal.SIGTERM)
        _, err = found.process.communicate(timeout=CLI_DEADLINE_S)
    assert found.process.returncode == 128 + signal.SIGTERM
    assert "lost connection to the agent's API server" in err


def test_a_pod_in_the_hosts_network(agent: Agent) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    script = f"trap 'exit 0' TERM; busybox nc -ll -p {number} -e cat & wait"
    agent.run(pod("host", container(script=script), hostNetwork=True))
    with forwarding(agent, "host", "--address", "127.0.0.1", f":{number}") as found:
        assert ask(found, found.port(), b"host") == b"host"


def test_what_cannot_be(agent: Agent) -> None:
    cases = {
        ("nobody", "80"): 'Error from server (NotFound): pods "nobody" not found',
        ("web", "1:2:3"): "error: invalid port format '1:2:3'",
        ("web", "8080:"): "error: remote port cannot be empty",
        ("web", "8080:http"): "error: Pod 'web' does not have a named port 'http'",
        ("web", ":dns"): "error: UDP protocol is not supported for dns",
        ("web", "80", "--address", "here"): "error: here is not a valid IP",
    }
    for arguments, words in cases.items():
        done = agent.cli("port-forward", *arguments)
        assert (done.code, done.err) == (1, f"{words}\n")


def test_a_port_that_is_taken(agent: Agent) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        done = agent.cli("port-forward", "web", "--address", "127.0.0.1", f"{number}:{ECHO}")
    assert done.code == 1
    assert done.err.splitlines() == [
        f"Unable to listen on port {number}: 127.0.0.1:{number}: Address already in use",
        f"error: unable to listen on any of the requested ports: {number}:{ECHO}",
    ]


def test_a_pod_that_does_not_run(agent: Agent) -> None:
    agent.write(pod("done", container(script="exit 0"), restartPolicy="Never"))
    agent.until(lambda: agent.pods().get("done", {}).get("status", {}).get("phase") == "Succeeded", "it has completed")
    done = agent.cli("port-forward", "done", "8080:80")
    assert (done.code, done.err) == (
        1,
        "error: unable to forward port because pod is not running. Current status=Succeeded\n",
    )
