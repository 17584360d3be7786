"""The dialer and real pods: each kind of network, and what is there after they have gone."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any, Final

import psutil
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from tests.contract.target import PodmanTarget, container_spec, pod_spec
from tests.fakes.ownership import ownership
from tests.support.pod_server import DialerProcess, connect_in_pod, dialer_process, listen_in_pod
from tests.support.podman_service import PodmanService, podman, wait_until
from workers.containers.known_containers import KnownContainers
from workers.dialer.client import DialerClient
from workers.pleg.observer import Observer
from workers.podhttp.pod_network import NOWHERE, DialError, PodNetwork, pod_network

pytestmark = pytest.mark.podman

PORT: Final = 8080
DEADLINE_S: Final = 20.0
HTTPD: Final = ("httpd", "-f", "-p", str(PORT), "-h", "/etc")
REQUEST: Final = b"GET /passwd HTTP/1.0\r\n\r\n"
ANSWER: Final = b"root:x:0:0:root:/:/bin/sh\n"
CARRIERS: Final = {"slirp4netns", "pasta", "pasta.avx2"}
SERVED: Final = ("the default", "a bridge", "keep-id")
"""Podman 4.3 cannot start a container beside an infra container whose user namespace it has chosen itself."""
NETWORKS: Final[dict[str, dict[str, Any]]] = {
    "the default": {},
    "a bridge": {"netns": {"nsmode": "bridge"}},
    "a user namespace of its own": {"userns": {"nsmode": "auto"}},
    "a user namespace of its own on a bridge": {"userns": {"nsmode": "auto"}, "netns": {"nsmode": "bridge"}},
    "keep-id": {"userns": {"nsmode": "keep-id"}},
}


@pytest.fixture
def dialer() -> Iterator[DialerProcess]:
    with dialer_process() as made:
        yield made


@pytest.fixture
def target(podman_service: PodmanService) -> PodmanTarget:
    return PodmanTarget(podman_service)


async def serving(target: PodmanTarget, uid: str, **changes: Any) -> None:
    """A pod with a web server."""
    pod = await target.runtime.create_pod(pod_spec(target, uid, **changes))
    id = await target.runtime.create_container(container_spec(target, pod, HTTPD, uid))
    await target.runtime.start_container(id)


async def observed(target: PodmanTarget, uid: str) -> RuntimePodStatus:
    known = KnownContainers(
        target.runtime,
        SystemClock(),
        ownership=ownership(target.instance),
        pod_logs_dir="/nonexistent",
        pods_dir="/nonexistent",
        on_exit=lambda _: None,
    )
    eyes = Observer(target.runtime, SystemClock(), known)
    try:
        return await eyes.observe(uid)
    finally:
        eyes.close()


async def hello(client: DialerClient, network: PodNetwork, address: str) -> bytes:
    """From the pod's own server, once it listens."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            sock = await client.socket(network, socket.AF_INET)
            try:
                await asyncio.get_running_loop().sock_connect(sock, (address, PORT))
            except ConnectionRefusedError:
                sock.close()
                await asyncio.sleep(0.02)
                continue
            reader, writer = await asyncio.open_connection(sock=sock)
            writer.write(REQUEST)
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return answer


@pytest.mark.parametrize("kind", SERVED)
async def test_a_pod_is_reached(target: PodmanTarget, dialer: DialerProcess, kind: str) -> None:
    client = DialerClient(str(dialer.path))
    try:
        await serving(target, "u1", **NETWORKS[kind])
        network = pod_network(await observed(target, "u1"))
        assert network.infra_pid
        for address in filter(None, ("127.0.0.1", network.ip)):
            assert (await hello(client, network, address)).count(ANSWER) == 1
        assert network.ip, "told by Podman or by the kernel"
    finally:
        client.close()
        await target.clean()


async def test_pods_in_user_namespaces_of_their_own_share_one_dialer(
    target: PodmanTarget, dialer: DialerProcess
) -> None:
    client = DialerClient(str(dialer.path))
    pid = dialer.pid
    try:
        networks = []
        for number, changes in enumerate(NETWORKS.values()):
            await target.runtime.start_container(
                (
                    await target.runtime.inspect_pod(
                        await target.runtime.create_pod(pod_spec(target, f"u{number}", **changes))
                    )
                ).infra_id
            )
            networks.append(pod_network(await observed(target, f"u{number}")))
        for number, network in enumerate(networks):
            listening = await listen_in_pod(client, network, PORT)
            greeting = f"pod {number}".encode()

            async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes = greeting) -> None:
                writer.write(said)
                writer.close()

            async with await asyncio.start_server(greet, sock=listening):
                assert await connect_in_pod(client, network, PORT) == greeting
                for other in networks[:number] + networks[number + 1 :]:
                    with pytest.raises(ConnectionRefusedError):
                        await connect_in_pod(client, other, PORT)
        assert not dialer.has_ended()
        assert dialer.pid == pid
    finally:
        client.close()
        await target.clean()


async def test_a_pod_that_goes_between_dial_and_connect(target: PodmanTarget, dialer: DialerProcess) -> None:
    client = DialerClient(str(dialer.path))
    try:
        await serving(target, "u1")
        status = await observed(target, "u1")
        network = pod_network(status)
        await hello(client, network, "127.0.0.1")
        sock = await client.socket(network, socket.AF_INET)
        await target.runtime.remove_pod(status.sandboxes[0].id)
        with sock, pytest.raises(ConnectionRefusedError):
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", PORT))
        with pytest.raises(DialError, match="sandbox has ended"):
            await client.socket(network, socket.AF_INET)
        assert pod_network(await observed(target, "u1")) == NOWHERE
    finally:
        client.close()
        await target.clean()


async def test_nothing_keeps_a_pods_network(target: PodmanTarget, dialer: DialerProcess) -> None:
    """Neither processes nor file descriptors: what helps a pod with its network ends with the pod."""
    client = DialerClient(str(dialer.path))
    try:
        await removed(target, client, "warm-up")
        files = dialer.open_files()
        for number in range(3):
            await removed(target, client, f"u{number}")
        wait_until(lambda: dialer.open_files() == files, DEADLINE_S)
    finally:
        client.close()
        await target.clean()


async def removed(target: PodmanTarget, client: DialerClient, uid: str) -> None:
    """Made, dialled, and gone, and who carried its packets too."""
    await serving(target, uid)
    status = await observed(target, uid)
    network = pod_network(status)
    await hello(client, network, "127.0.0.1")
    place = podman("inspect", "--format", "{{.NetworkSettings.SandboxKey}}", status.sandboxes[0].infra_id).strip()
    carriers = [process for process in psutil.process_iter() if carries_packets_of(process, place)]
    assert len(carriers) == 1
    await target.runtime.remove_pod(status.sandboxes[0].id)
    wait_until(lambda: not carriers[0].is_running(), DEADLINE_S)


def carries_packets_of(process: psutil.Process, network: str) -> bool:
    """slirp4netns and pasta get the path of the network namespace."""
    with contextlib.suppress(psutil.Error):
        return process.name() in CARRIERS and network in process.cmdline()
    return False
