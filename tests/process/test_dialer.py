"""A real dialer process and its client, without Podman: the pods are processes with namespaces of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from ipc.k8s.api.v1.container import Container
from ipc.link.messages.dialer import DialerAnswer, MakeSocket
from ipc.link.wire.boot import EXIT_IDLE, EXIT_RESPAWN
from ipc.link.wire.packets import PacketLink
from tests.support.open_files import open_files, open_files_before
from tests.support.pod_server import (
    DEADLINE_S,
    HEARTBEAT_S,
    DialerProcess,
    bring_up_loopback,
    connect_in_pod,
    dialer_process,
    listen_in_pod,
    network_of,
    own_network,
)
from tests.support.podman_service import wait_until
from tests.support.servers.local_servers import probed, tcp
from workers.dialer.client import DialerClient
from workers.podhttp.pod_network import NOWHERE, DialError, PodNetwork
from workers.prober.outcome import Answer, ProbeOutcome, ProbeTarget

pytestmark = pytest.mark.process

Pod = subprocess.Popen[bytes]
GREETING: Final = b"from within"
SHORT_S: Final = 0.3
IDLE_S: Final = 0.1
PROBE_S: Final = 30
"""Timeout of a probe."""
FEW_FILES: Final = 4
TURNS: Final = 5
TOO_MANY: Final = 10_000
"""Answers for a client that reads none."""


@pytest.fixture
def dialer() -> Iterator[DialerProcess]:
    with dialer_process() as made:
        yield made


@pytest.fixture
def pod() -> Iterator[Pod]:
    with own_network() as made:
        yield made


@pytest.fixture
def other_pod() -> Iterator[Pod]:
    with own_network() as made:
        yield made


@pytest.fixture
async def client(dialer: DialerProcess) -> AsyncIterator[DialerClient]:
    made = DialerClient(str(dialer.path))
    yield made
    made.close()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(GREETING)
    writer.close()


async def test_a_socket_belongs_to_the_pods_network(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    network = network_of(pod.pid)
    await bring_up_loopback(client, network)
    listening = await listen_in_pod(client, network, 8080)
    async with await asyncio.start_server(greet, sock=listening):
        assert await connect_in_pod(client, network, 8080) == GREETING
        with socket.socket() as ours, pytest.raises(ConnectionRefusedError):
            ours.connect(("127.0.0.1", 8080))


async def test_pods_do_not_see_one_another(
    client: DialerClient, dialer: DialerProcess, pod: Pod, other_pod: Pod
) -> None:
    """Two user namespaces: the dialer begins anew for the second, and the client does not notice."""
    for each in (pod, other_pod):
        asking = asyncio.create_task(bring_up_loopback(client, network_of(each.pid)))
        while not asking.done():
            if dialer.has_ended():
                assert dialer.wait_end() == EXIT_RESPAWN
                dialer.start()
            await asyncio.wait({asking}, timeout=0.01)
        await asking
    assert dialer.incarnation == (1 if os.geteuid() == 0 else 2), "root needs to join nobody"


@pytest.mark.skipif(os.geteuid() == 0, reason="root needs to join nobody")
async def test_pods_in_two_user_namespaces_are_reached_in_turns(
    dialer: DialerProcess, pod: Pod, other_pod: Pod
) -> None:
    """Two workers, each with a pod that is asked for without a pause."""
    reached = {pod.pid: 0, other_pod.pid: 0}

    async def ask(pid: int) -> None:
        with contextlib.closing(DialerClient(str(dialer.path))) as own:
            while True:
                (await own.socket(network_of(pid), socket.AF_INET)).close()
                reached[pid] += 1
                await asyncio.sleep(0.01)

    asking = [asyncio.create_task(ask(pid)) for pid in reached]
    async with asyncio.timeout(DEADLINE_S):
        while dialer.incarnation < TURNS or not all(reached.values()):
            if dialer.has_ended():
                assert dialer.wait_end() == EXIT_RESPAWN
                dialer.start()
            await asyncio.wait(asking, timeout=0.01)
            assert not any(task.done() for task in asking), "nobody has waited for too long"
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_ipv6(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    network = network_of(pod.pid)
    await bring_up_loopback(client, network)
    async with await asyncio.start_server(greet, sock=await listen_in_pod(client, network, 8080, "::1")):
        assert await connect_in_pod(client, network, 8080, "::1") == GREETING


async def test_the_hosts_network_needs_no_dialer() -> None:
    client = DialerClient("/nonexistent")
    with await client.socket(PodNetwork(), socket.AF_INET) as ours:
        assert ours.getblocking() is False
        ours.bind(("127.0.0.1", 0))
    with pytest.raises(DialError, match="no sandbox that runs"):
        await client.socket(NOWHERE, socket.AF_INET)


async def test_a_reused_pid_is_refused(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    network = network_of(pod.pid)
    for ticks in (network.infra_start_ticks - 1, network.infra_start_ticks + 1, 0):
        stranger = PodNetwork(infra_pid=pod.pid, infra_start_ticks=ticks)
        with pytest.raises(DialError, match="another process"):
            await client.socket(stranger, socket.AF_INET)


async def test_a_pod_that_has_ended_is_refused(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    network = network_of(pod.pid)
    pod.kill()
    for _ in ("a zombie", "nothing"):
        with pytest.raises(DialError, match="sandbox has ended"):
            await client.socket(network, socket.AF_INET)
        pod.wait()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter it")
async def test_the_hosts_network_is_no_pods(client: DialerClient, dialer: DialerProcess) -> None:
    """The network of a process of ours that is in no pod is refused."""
    with pytest.raises(DialError, match="is the host's"):
        await client.socket(network_of(os.getpid()), socket.AF_INET)


async def test_a_killed_dialer_is_waited_for(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    network = network_of(pod.pid)
    (await client.socket(network, socket.AF_INET)).close()
    dialer.kill(signal.SIGSTOP)
    asking = [asyncio.create_task(client.socket(network, socket.AF_INET)) for _ in range(100)]
    await asyncio.sleep(0)
    dialer.kill()
    dialer.wait_end()
    dialer.start()
    for sock in await asyncio.gather(*asking):
        sock.close()


async def test_a_dialer_that_is_killed_in_mid_probe_delays_the_attempt_and_fails_none(
    client: DialerClient, dialer: DialerProcess, pod: Pod
) -> None:
    network = network_of(pod.pid, "127.0.0.1")
    await bring_up_loopback(client, network)
    with await listen_in_pod(client, network) as listening:
        port = listening.getsockname()[1]
        whom = ProbeTarget(container=Container(name="main"), container_id="id", network=network)
        dialer.kill(signal.SIGSTOP)
        attempts = [asyncio.create_task(probed(tcp(port, PROBE_S), whom, client)) for _ in range(20)]
        await asyncio.sleep(0)
        dialer.kill()
        dialer.wait_end()
        assert not any(each.done() for each in attempts)
        dialer.start()
        assert await asyncio.gather(*attempts) == [ProbeOutcome(Answer.SUCCESS)] * 20


async def test_who_asks_at_any_moment_of_a_dialer_that_leaves_again_and_again_gets_an_answer(pod: Pod) -> None:
    network = network_of(pod.pid)

    async def ask_now_and_then(client: DialerClient) -> None:
        for turn in range(5 * TURNS):
            await asyncio.sleep(2 * IDLE_S * (turn % 5) / 4)
            (await client.socket(network, socket.AF_INET)).close()

    with dialer_process(idle_timeout_s=IDLE_S) as dialer, contextlib.closing(DialerClient(str(dialer.path))) as client:
        asking = asyncio.create_task(ask_now_and_then(client))
        while not asking.done():
            if dialer.has_ended():
                assert dialer.wait_end() == EXIT_IDLE
                dialer.start()
            await asyncio.wait({asking}, timeout=IDLE_S / 10)
        await asking
        assert dialer.incarnation >= TURNS


async def test_a_dialer_that_hangs_is_not_waited_for(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    hasty, network = DialerClient(str(dialer.path), deadline_s=SHORT_S), network_of(pod.pid)
    dialer.kill(signal.SIGSTOP)
    with pytest.raises(DialError, match="has not answered within"):
        await hasty.socket(network, socket.AF_INET)
    dialer.kill(signal.SIGCONT)
    with await hasty.socket(network, socket.AF_INET) as sock:  # the late answer is nobody's
        assert sock.family is socket.AF_INET
    hasty.close()


async def test_nobody_listens() -> None:
    client = DialerClient("/nonexistent", deadline_s=SHORT_S)
    with pytest.raises(DialError, match="has not answered within"):
        await client.socket(PodNetwork(infra_pid=1, infra_start_ticks=1), socket.AF_INET)
    client.close()


async def test_nothing_is_kept(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    """Neither the client nor the dialer has more open afterwards; a pod's network goes with the pod."""
    network = network_of(pod.pid)
    (await client.socket(network, socket.AF_INET)).close()
    its_network = os.readlink(f"/proc/{pod.pid}/ns/net")
    wait_until(lambda: os.readlink(f"/proc/{dialer.pid}/ns/net") != its_network, DEADLINE_S)
    ours, theirs = open_files_before(), dialer.open_files()
    for _ in range(20):
        for sock in await asyncio.gather(*(client.socket(network, socket.AF_INET) for _ in range(50))):
            sock.close()
    cancelled = [asyncio.create_task(client.socket(network, socket.AF_INET)) for _ in range(50)]
    await asyncio.sleep(0)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)
    (await client.socket(network, socket.AF_INET)).close()
    assert open_files() == ours
    # An answer is there a moment before the dialer has put everything back.
    wait_until(lambda: dialer.open_files() == theirs, DEADLINE_S)
    wait_until(lambda: os.readlink(f"/proc/{dialer.pid}/ns/net") != its_network, DEADLINE_S)
    assert its_network not in dialer.open_files().values()


async def test_a_client_that_does_not_read_blocks_nobody(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(str(dialer.path))
    sock.settimeout(DEADLINE_S)
    deaf: PacketLink[MakeSocket, DialerAnswer] = PacketLink(sock, DialerAnswer)
    network = network_of(pod.pid)
    request = MakeSocket(number=1, pid=pod.pid, start_ticks=network.infra_start_ticks, family=int(socket.AF_INET))
    with contextlib.suppress(ConnectionError):  # it is let go, sooner or later
        for _ in range(TOO_MANY):
            deaf.send(request)
    (await client.socket(network, socket.AF_INET)).close()
    deaf.close()


async def test_a_dialer_without_file_descriptors_fails_nobody(
    client: DialerClient, dialer: DialerProcess, pod: Pod
) -> None:
    """Neither pods nor itself: whoever asks waits until there are some."""
    network = network_of(pod.pid)
    (await client.socket(network, socket.AF_INET)).close()
    limits = resource.prlimit(dialer.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(dialer.pid, resource.RLIMIT_NOFILE, (FEW_FILES, limits[1]))
    late = DialerClient(str(dialer.path))
    asking = [asyncio.create_task(each.socket(network, socket.AF_INET)) for each in (client, late)]
    await asyncio.wait(asking, timeout=SHORT_S)
    assert not any(task.done() for task in asking)
    assert not dialer.has_ended()
    resource.prlimit(dialer.pid, resource.RLIMIT_NOFILE, limits)
    for sock in await asyncio.gather(*asking):
        sock.close()
    late.close()


async def test_nonsense_ends_the_connection_alone(client: DialerClient, dialer: DialerProcess, pod: Pod) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as raw:
        raw.connect(str(dialer.path))
        raw.settimeout(DEADLINE_S)
        raw.send(b"\xc1 this is no message")
        assert raw.recv(100) == b""
    (await client.socket(network_of(pod.pid), socket.AF_INET)).close()


def test_it_beats_and_leaves(dialer: DialerProcess) -> None:
    def beat() -> float:
        row = dialer.board.read_worker(0)
        return row.heartbeat if row is not None and row.incarnation == dialer.incarnation else 0.0

    wait_until(lambda: beat() > 0, DEADLINE_S)
    first = beat()
    wait_until(lambda: beat() > first + HEARTBEAT_S / 2, DEADLINE_S)
    dialer.say_leave()
    assert dialer.wait_end() == 0
    dialer.start()
    wait_until(lambda: beat() > 0, DEADLINE_S)
    dialer.kill(signal.SIGTERM)
    assert dialer.wait_end() == 0
