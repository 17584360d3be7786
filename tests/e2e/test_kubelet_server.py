"""The kubelet's server of a real agent, by `curl --cert` and a WebSocket client: what it answers and who may ask, and
what 10,000 connections do to its pods."""

from __future__ import annotations

import contextlib
import errno
import json
import resource
import selectors
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import psutil
import pytest

from tests.e2e.agent import CLI_DEADLINE_S, DEADLINE_S, Agent, free_ports, restart_count
from tests.e2e.conftest import NewAgent
from tests.e2e.manifests import container, pod
from tests.e2e.test_statistics import RECORDINGS, shape
from tests.support.certificates import Authority, client_context
from workers.api_server.core.port_listener import MAX_CONNECTIONS

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.podman,
    pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed"),
]

CONNECTIONS: Final = 10_000
MAX_GROWTH_BYTES: Final = 64 * 1024 * 1024
RULES: Final = {"admin": ["*"], "prometheus": ["metrics", "stats"]}


class Answer(NamedTuple):
    code: int
    text: str


class Server(NamedTuple):
    """An agent, its ports and the authority of its clients."""

    agent: Agent
    port: int
    read_only_port: int
    healthz_port: int
    authority: Authority

    def curl(self, path: str, *options: str, name: str = "admin", port: int = 0) -> Answer:
        """With a certificate of that name; without one for an empty name."""
        scheme = "http" if port else "https"
        cert = ("--cert", str(self.authority.client(name))) if name else ()
        command = [
            *("curl", "--silent", "--show-error", "--insecure", "--max-time", str(CLI_DEADLINE_S)),
            *("--write-out", "\n%{http_code}", *cert, *options, f"{scheme}://127.0.0.1:{port or self.port}{path}"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CLI_DEADLINE_S, check=False)
        text, _, code = done.stdout.rpartition("\n")
        return Answer(int(code), text)

    def json(self, path: str) -> Any:
        answer = self.curl(path)
        assert answer.code == 200, answer
        return json.loads(answer.text)


def serving(new_agent: NewAgent, directory: Path, **changes: Any) -> Server:
    authority, (port, read_only_port, healthz_port) = Authority(directory), free_ports(3)
    tokens = directory / "tokens"
    tokens.write_text("topsecret,admin,1\n")
    section = {
        "address": "127.0.0.1",
        "port": port,
        "readOnlyPort": read_only_port,
        "healthzPort": healthz_port,
        "authentication": {"x509": {"clientCAFile": str(authority.file)}, "tokenFile": str(tokens)},
        "authorization": {"mode": "Rules", "rules": RULES},
    }
    agent = new_agent(server=section, **changes)
    return Server(agent, port, read_only_port, healthz_port, authority)


@pytest.fixture(scope="module")
def server(new_shared_agent: NewAgent, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """An agent that serves, and runs a pod of two containers."""
    made = serving(new_shared_agent, tmp_path_factory.mktemp("server"))
    made.agent.start()
    made.agent.run(pod("web", container("main", script="echo out; echo err >&2; exec sleep 3600"), container("side")))
    return made


def test_who_may_ask(server: Server) -> None:
    assert server.curl("/pods").code == 200
    assert server.curl("/pods", "--header", "Authorization: Bearer topsecret", name="").code == 200
    assert server.curl("/pods", name="") == Answer(401, "Unauthorized")
    assert server.curl("/pods", "--header", "Authorization: Bearer wrong", name="") == Answer(401, "Unauthorized")
    for path in ("/pods", "/allocatedPods", "/allocatedPods/default/web"):
        refused = server.curl(path, name="prometheus")
        assert refused.code == 403
        assert "sleep" not in refused.text


def test_pods_as_they_are_wanted_and_as_they_run(server: Server) -> None:
    (wanted,) = server.json("/pods")["items"]
    assert (wanted["metadata"]["name"], wanted["status"]["phase"]) == ("web", "Running")
    (running,) = server.json("/runningpods/")["items"]
    assert [each["name"] for each in running["spec"]["containers"]] == ["main", "side"]
    assert set(server.json("/podInfo?podID=web&podNamespace=default")) == {"main", "side"}


NOT_OF_THIS_POD: Final = (
    "._trimmed",
    ".items[].metadata.annotations.",
    ".items[].spec.preemptionPolicy",
    ".items[].spec.priority",
    ".items[].spec.serviceAccount",
    ".items[].spec.tolerations[]",
    ".items[].spec.volumes[]",
    ".items[].spec.containers[].volumeMounts[]",
    ".items[].status.containerStatuses[].volumeMounts[]",
    ".items[].status.containerStatuses[].state.",
    ".items[].status.conditions[].message",
    ".items[].status.conditions[].reason",
)
"""Fields that a cluster adds to a pod, and states that this one is not in."""
OURS: Final = frozenset(
    {
        ".items[].apiVersion",
        ".items[].kind",
        ".items[].metadata.annotations.kubernetes.io/config.hash",
        *(f".items[].status.containerStatuses[].{name}" for name in ("containerID", "resources", "stopSignal")),
        *(f".items[].status.containerStatuses[].user.linux.{name}" for name in ("uid", "gid")),
        ".items[].status.containerStatuses[].state.running.startedAt",
    }
)
"""A static pod's hash, and statuses of containers that have started, as none of the recorded ones had."""


@pytest.mark.parametrize("path", ["/pods", "/runningpods/"])
def test_pods_have_the_shape_of_upstreams(server: Server, path: str) -> None:
    if not RECORDINGS.exists():
        pytest.skip("the recordings of a real kubelet do not lie here")
    bodies = [
        record["response_body"]
        for record in json.loads(RECORDINGS.read_text())["records"]
        if record["path"] == path and record["status"] == 200 and isinstance(record["response_body"], dict)
    ]
    theirs = {leaf for body in bodies for leaf in shape(body) if leaf[1] != "NoneType"}
    ours = shape(server.json(path))
    assert {path for path, _ in theirs - ours if not path.startswith(NOT_OF_THIS_POD)} == set()
    assert {path for path, kind in ours - theirs if kind != "NoneType"} <= OURS


def test_health_and_pages(server: Server) -> None:
    server.agent.until(lambda: server.curl("/healthz").code == 200, "everything is healthy")
    text = server.curl("/healthz?verbose").text
    assert {"[+]ping ok", "[+]syncloop ok", "[+]relist ok", "[+]podman ok", "[+]worker-node ok"} <= set(
        text.splitlines()
    )
    assert server.curl("/healthz/podman") == Answer(200, "ok")
    config = server.json("/configz")["kubeletconfig"]
    assert (config["kind"], config["server"]["port"]) == ("RootletConfiguration", server.port)
    assert "Python version= " in server.curl("/statusz").text
    assert f"server.port:{server.port}\n" in server.curl("/flagz").text


def test_the_other_ports(server: Server) -> None:
    for path in ("/pods", "/allocatedPods", "/allocatedPods/default/web"):
        assert server.curl(path, port=server.read_only_port).code == 200
    assert server.curl("/exec/default/web/main", port=server.read_only_port).code == 405
    assert server.curl("/healthz", port=server.healthz_port) == Answer(200, "ok")
    assert server.curl("/pods", port=server.healthz_port).code == 404
    endpoints = server.agent.get("/api/v1/nodes")["items"][0]["status"]["daemonEndpoints"]
    assert endpoints == {"kubeletEndpoint": {"Port": server.port}}


def test_logs_of_a_container(server: Server) -> None:
    path = "/containerLogs/default/web/main"
    server.agent.until(lambda: "err" in server.curl(path).text, "both lines are there")
    assert server.curl(f"{path}?stream=Stdout") == Answer(200, "out\n")
    assert server.curl(f"{path}?stream=Stderr") == Answer(200, "err\n")
    assert server.curl("/logs/rootlet.log").code == 200, "standard error of these tests' agents is a file"


def test_run(server: Server) -> None:
    assert server.curl("/run/default/web/main?cmd=echo%20hi", "--request", "POST") == Answer(200, "hi\n")
    assert server.curl("/run/default/web/main?cmd=cat%20/none", "--request", "POST").code == 500
    uid = server.json("/pods")["items"][0]["metadata"]["uid"]
    assert server.curl(f"/run/default/web/{uid}/side?cmd=id", "--request", "POST").code == 200
    assert server.curl("/run/default/web/other/side?cmd=id", "--request", "POST").code == 404
    failed = server.curl("/run/default/web/main?cmd=false", "--request", "POST")
    assert failed == Answer(500, "command 'false' exited with 1: ")


def test_exec_over_a_websocket_with_the_kubelets_parameters(server: Server) -> None:
    messages = executed(server)
    assert b"".join(message[1:] for message in messages if message[0] == 1) == b"hi\n"
    (status,) = (json.loads(message[1:]) for message in messages if message[0] == 3)
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


def executed(server: Server) -> list[bytes]:
    """All messages of a command's stream, read by hand: clients of asyncio leave their end of TLS to the loop's."""
    path = "/exec/default/web/main?command=sh&command=-c&command=echo+hi;exit+3&output=1"
    context = client_context(server.authority.client("admin"))
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_S) as plain,
        context.wrap_socket(plain) as client,
        client.makefile("rb") as answer,
    ):
        client.sendall(
            f"GET {path} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n".encode()
        )
        assert answer.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
        while answer.readline() != b"\r\n":
            pass
        return list(messages_of(answer))


def messages_of(answer: IO[bytes]) -> Iterator[bytes]:
    """Binary messages of a server, each a frame, up to its closing one (RFC 6455, 5.2)."""
    while (head := answer.read(2)) and (opcode := head[0] & 0x0F) != 0x8:
        length = head[1] & 0x7F
        if extended := {126: 2, 127: 8}.get(length, 0):
            length = int.from_bytes(answer.read(extended), "big")
        data = answer.read(length)
        if opcode == 0x2:
            yield data


def test_a_set_by_request(server: Server) -> None:
    manifest = json.dumps(pod("posted", container()))
    assert server.curl("/container", "--data-binary", manifest).code == 200
    server.agent.until_running(["posted"])
    wrong = server.curl("/containers", "--data-binary", '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"posted"}}')
    assert wrong.code == 400
    assert "spec" in wrong.text
    taken = server.curl("/container", "--data-binary", json.dumps(pod("web", container())))
    assert taken.code == 400
    assert "posted" in server.agent.pods()
    nothing = '{"apiVersion":"v1","kind":"PodList","items":[]}'
    assert server.curl("/containers", "--data-binary", nothing).code == 200
    server.agent.until_gone(["posted"])


@contextlib.contextmanager
def crowd(port: int, count: int) -> Iterator[int]:
    """So many clients that connect and then say nothing; how many have got through to the backlog at least."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 1000, hard), hard))
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for _ in range(count):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            assert client.connect_ex(("127.0.0.1", port)) in (0, errno.EINPROGRESS)
            selector.register(client, selectors.EVENT_WRITE)
        yield len(selector.select(1.0))


@pytest.mark.timeout(300)
def test_the_pods_notice_nothing_of_ten_thousand_connections(server: Server) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < CONNECTIONS + 1000:
        pytest.skip("this process may not open that many files")
    agent = server.agent
    probed = container("main", readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1, "timeoutSeconds": 10})
    agent.run(pod("probed", probed))
    process = psutil.Process(agent.processes()["api"])
    before = process.memory_info().rss
    with crowd(server.port, CONNECTIONS) as connected:
        assert connected > MAX_CONNECTIONS
        assert agent.cli("get", "pods").code == 0, "the admin socket is not concerned"
        agent.run(pod("meanwhile", container()))
        assert process.num_fds() < MAX_CONNECTIONS + 100
        assert process.memory_info().rss - before < MAX_GROWTH_BYTES
    agent.until(lambda: server.curl("/healthz/ping").code == 200, "the port answers again")
    assert process.pid == agent.processes()["api"]
    pods = agent.pods()
    assert {name: restart_count(pods[name]) for name in ("probed", "meanwhile", "web")} == {
        "probed": 0,
        "meanwhile": 0,
        "web": 0,
    }
    assert not agent.messages("probed", "Unhealthy")


@pytest.mark.slow
def test_a_connection_to_a_port_brings_the_api_server_back(new_agent: NewAgent, tmp_path: Path) -> None:
    server = serving(new_agent, tmp_path, workers={"idleTimeout": "4s"})
    server.agent.start()
    for port in (0, server.read_only_port):
        server.agent.until(lambda: not api_servers(server.agent), "nobody has come for long, so it has left")
        assert server.curl("/pods", port=port).code == 200
        assert len(api_servers(server.agent)) == 1


def api_servers(agent: Agent) -> list[psutil.Process]:
    """API servers of the agent, found without asking it."""
    found = []
    for process in psutil.Process(agent.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.name().startswith("rootlet-api"):
                found.append(process)
    return found
