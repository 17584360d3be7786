"""Probes of real pods, whose image is one static binary: servers are in the test and listen in the pod's network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple

import msgspec
import pytest

from ipc.k8s.api.v1.container import Container, ContainerPort
from ipc.k8s.api.v1.env import EnvVar
from ipc.k8s.api.v1.probe import ExecAction, HTTPHeader, Probe
from tests.support.one_binary import BINARY, WAIT, ensure_one_binary_image
from tests.support.pod_server import DialerProcess, dialer_process, listen_in_pod, network_of_pod
from tests.support.podman_service import PodmanService, podman
from tests.support.servers.health_server import NOT_SERVING, SERVING, health
from tests.support.servers.local_servers import (
    Handler,
    answering,
    grpc,
    handling,
    http,
    request_of,
    response,
    server_context,
    silent,
    tcp,
)
from workers.dialer.client import DialerClient
from workers.kubecontainer.labels import INSTANCE
from workers.podhttp.pod_network import PodNetwork
from workers.podman import PodmanRuntime
from workers.prober.attempt import attempt
from workers.prober.outcome import MAX_OUTPUT_BYTES, Answer, ProbeError, ProbeOutcome, ProbeTarget
from workers.proc.procfs import start_ticks

pytestmark = pytest.mark.podman

OWN_NETWORKS: Final = ("slirp4netns", "bridge")
NETWORKS: Final = (*OWN_NETWORKS, "host")
WEB: Final = 8080
EXEC_TIMEOUT_S: Final = 30
SUCCESS: Final = ProbeOutcome(Answer.SUCCESS)


class RealPod(NamedTuple):
    """A pod of Podman's with one container."""

    network: PodNetwork
    container_id: str
    service: PodmanService
    dialer_path: str


@pytest.fixture(scope="module")
def dialer(podman_service: PodmanService) -> Iterator[DialerProcess]:
    with dialer_process() as made:
        yield made


@pytest.fixture(scope="module", params=NETWORKS)
def pod(
    request: pytest.FixtureRequest,
    podman_service: PodmanService,
    dialer: DialerProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> RealPod:
    """Removed with the session's other things."""
    image = ensure_one_binary_image(tmp_path_factory.mktemp("image"))
    label = f"{INSTANCE}={podman_service.new_instance()}"
    id = podman("pod", "create", "--label", label, "--network", request.param).strip()
    container = podman("run", "--detach", "--label", label, "--pod", id, image, *WAIT).strip()
    network = PodNetwork() if request.param == "host" else network_of_pod(id)
    return RealPod(network, container, podman_service, str(dialer.path))


class Prober:
    """Attempts at one pod."""

    def __init__(self, pod: RealPod) -> None:
        self.pod = pod
        self.dialer = DialerClient(pod.dialer_path)
        self.runtime = PodmanRuntime(pod.service.socket, "nobody")

    async def close(self) -> None:
        self.dialer.close()
        await self.runtime.close()

    async def probe(self, probe: Probe, container: Container | None = None) -> ProbeOutcome:
        target = ProbeTarget(
            container=container or Container(name="main"),
            container_id=self.pod.container_id,
            network=self.pod.network,
        )
        return await attempt(probe, target, self.dialer, self.runtime)

    @contextlib.asynccontextmanager
    async def serving(self, handler: Handler, address: str = "0.0.0.0", tls: bool = False) -> AsyncIterator[int]:
        """The port in the pod."""
        listening = await listen_in_pod(self.dialer, self.pod.network, 0, address)
        port: int = listening.getsockname()[1]
        async with handling(handler, sock=listening, ssl=server_context() if tls else None):
            yield port


@pytest.fixture
async def prober(pod: RealPod) -> AsyncIterator[Prober]:
    made = Prober(pod)
    yield made
    await made.close()


async def test_http(prober: Prober) -> None:
    heads: list[str] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await request_of(reader)).decode())
        writer.write(response(b"well"))

    async with prober.serving(handler) as port:
        given = (HTTPHeader(name="Host", value="example.org"), HTTPHeader(name="X-Probe", value="yes"))
        container = Container(name="main", ports=(ContainerPort(name="web", container_port=port),))
        assert await prober.probe(http(port)) == ProbeOutcome(Answer.SUCCESS, "well")
        assert await prober.probe(http("web", path="/healthz?deep", http_headers=given), container) == ProbeOutcome(
            Answer.SUCCESS, "well"
        )
        assert (await prober.probe(http(port, host=prober.pod.network.ip))).answer is Answer.SUCCESS
    ip = prober.pod.network.ip or "127.0.0.1"
    assert heads[0] == (
        f"GET / HTTP/1.1\r\nHost: {ip}:{port}\r\nUser-Agent: kube-probe/1.36\r\n"
        "Accept: */*\r\nConnection: close\r\n\r\n"
    )
    assert heads[1].startswith("GET /healthz?deep HTTP/1.1\r\nHost: example.org\r\n")
    assert "X-Probe: yes\r\n" in heads[1]


async def test_https(prober: Prober) -> None:
    async with prober.serving(answering(response()), tls=True) as port:
        assert await prober.probe(http(port, scheme="HTTPS")) == ProbeOutcome(Answer.SUCCESS, "ok")
        assert (await prober.probe(http(port, scheme="HTTP"))).answer is Answer.FAILURE


async def test_http_failures(prober: Prober) -> None:
    async with prober.serving(answering(response(b"secret", "500 Internal Server Error"))) as port:
        expected = ProbeOutcome(Answer.FAILURE, "HTTP probe failed with statuscode: 500")
        assert await prober.probe(http(port)) == expected
    outcome = await prober.probe(http(port))
    assert outcome.answer is Answer.FAILURE
    assert outcome.output.endswith(f":{port}: connect: connection refused")
    async with prober.serving(silent) as port:
        outcome = await prober.probe(http(port))
        assert outcome.answer is Answer.FAILURE
        assert outcome.output.endswith("(Client.Timeout exceeded while awaiting headers)")


async def test_tcp(prober: Prober) -> None:
    container = Container(name="main", ports=(ContainerPort(name="db", container_port=1),))
    async with prober.serving(silent) as port:
        assert await prober.probe(tcp(port)) == SUCCESS
        assert await prober.probe(tcp(port, host=prober.pod.network.ip)) == SUCCESS
        assert (await prober.probe(tcp("db"), container)).answer is Answer.FAILURE
    outcome = await prober.probe(tcp(port))
    assert outcome.answer is Answer.FAILURE
    assert outcome.output.endswith("connect: connection refused")


async def test_grpc(prober: Prober) -> None:
    async with prober.serving(health({"": SERVING, "db": NOT_SERVING})) as port:
        assert await prober.probe(grpc(port)) == ProbeOutcome(Answer.SUCCESS, "service healthy")
        outcomes = [await prober.probe(grpc(port, service=service)) for service in ("db", "cache")]
    assert [outcome.output for outcome in outcomes] == [
        'service unhealthy (responded with "NOT_SERVING")',
        "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service",
    ]


async def test_what_listens_on_the_pods_loopback_only_is_not_ready(prober: Prober) -> None:
    """As upstream, where the kubelet comes from outside."""
    ip = prober.pod.network.ip
    async with prober.serving(silent, address="127.0.0.1") as port:
        assert (await prober.probe(tcp(port))).answer is (Answer.FAILURE if ip else Answer.SUCCESS)


def command(*words: str, timeout_s: int = EXEC_TIMEOUT_S) -> Probe:
    return Probe(exec=ExecAction(command=words), timeout_seconds=timeout_s)


async def test_exec(prober: Prober) -> None:
    container = Container(name="main", env=(EnvVar(name="CODE", value="7"),))
    assert await prober.probe(command(BINARY, "exit", "0")) == SUCCESS
    assert await prober.probe(command(BINARY, "exit", "$(CODE)"), container) == ProbeOutcome(Answer.FAILURE)
    said = await prober.probe(command(BINARY, "say", "3", "ill"))
    assert (said.answer, sorted(said.output)) == (Answer.FAILURE, sorted("ill!"))
    flood = await prober.probe(command(BINARY, "flood", "20000"))
    assert flood == ProbeOutcome(Answer.SUCCESS, "x" * MAX_OUTPUT_BYTES)
    late = await prober.probe(command(BINARY, "wait", timeout_s=1))
    assert late == ProbeOutcome(Answer.FAILURE, f'command timed out: "{BINARY} wait" timed out after 1s')
    with pytest.raises(ProbeError):
        await prober.probe(command("/bin/sh", "-c", "true"))


@pytest.mark.parametrize("pod", OWN_NETWORKS, indirect=True)
async def test_a_pod_that_is_gone_between_two_attempts(
    podman_service: PodmanService, dialer: DialerProcess, pod: RealPod
) -> None:
    id = podman("pod", "create", "--label", f"{INSTANCE}={podman_service.new_instance()}").strip()
    podman("pod", "start", id)
    network = network_of_pod(id)
    prober = Prober(pod._replace(network=network))
    try:
        async with prober.serving(silent) as port:
            assert await prober.probe(tcp(port)) == SUCCESS
            podman("pod", "rm", "--force", "--time", "0", id)
            with pytest.raises(ProbeError, match="sandbox has ended"):
                await prober.probe(tcp(port))
    finally:
        await prober.close()


@pytest.mark.parametrize("pod", OWN_NETWORKS, indirect=True)
async def test_a_pid_that_belongs_to_somebody_else_now_is_not_dialled(prober: Prober) -> None:
    stranger = msgspec.structs.replace(
        prober.pod.network, infra_start_ticks=start_ticks(prober.pod.network.infra_pid) + 1
    )
    other = Prober(prober.pod._replace(network=stranger))
    with pytest.raises(ProbeError, match="another process"):
        await other.probe(tcp(WEB))
    await other.close()
