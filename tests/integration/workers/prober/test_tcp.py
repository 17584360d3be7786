"""TCP probes on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from ipc.k8s.api.v1.container import Container, ContainerPort
from tests.support.servers.local_servers import (
    LOOPBACK,
    NO_HOSTS,
    DeadDialer,
    LocalDialer,
    NoDialer,
    Run,
    nothing_left,
    probed,
    serving,
    silent,
    target,
    tcp,
    unused_port,
)
from workers.podhttp.pod_network import PodNetwork
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome

SUCCESS = ProbeOutcome(Answer.SUCCESS)
DEADLINE_S = 30.0


async def test_a_server_that_accepts_is_enough() -> None:
    async with serving(silent) as port:
        assert await probed(tcp(port)) == SUCCESS


def test_it_sees_an_end_and_no_reset(run: Run) -> None:
    seen: list[object] = []
    ended = asyncio.Event()

    async def watch(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        try:
            seen.append(await reader.read())
        finally:
            ended.set()

    async def scenario() -> None:
        async with serving(watch) as port, nothing_left():
            assert await probed(tcp(port)) == SUCCESS
            async with asyncio.timeout(DEADLINE_S):
                await ended.wait()
        assert seen == [b""]

    run(scenario())


@pytest.mark.parametrize("host", NO_HOSTS)
async def test_what_is_no_host_is_a_failure_at_once(host: str) -> None:
    dialer = LocalDialer()
    outcome = await probed(tcp(80, timeout_s=60, host=host), dialer=dialer)
    assert outcome == ProbeOutcome(Answer.FAILURE, f"dial tcp: lookup {host}: no such host")
    assert dialer.asked == []


def test_nobody_listens(run: Run) -> None:
    async def scenario() -> None:
        port = unused_port()
        async with nothing_left():
            outcome = await probed(tcp(port))
        text = f"dial tcp {LOOPBACK}:{port}: connect: connection refused"
        assert outcome == ProbeOutcome(Answer.FAILURE, text)

    run(scenario())


def test_a_server_that_accepts_no_more_takes_the_timeout_of_its_own_probe_only(run: Run) -> None:
    """The server's queue is full: the kernel drops what asks for more."""

    async def scenario() -> None:
        with contextlib.ExitStack() as stack:
            full = stack.enter_context(socket.socket())
            full.bind((LOOPBACK, 0))
            full.listen(0)
            port = full.getsockname()[1]
            for _ in range(4):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())
            async with serving(silent) as other, nothing_left():
                hanging = asyncio.ensure_future(probed(tcp(port)))
                assert await probed(tcp(other)) == SUCCESS
                assert not hanging.done()
                outcome = await hanging
            assert outcome == ProbeOutcome(Answer.FAILURE, f"dial tcp {LOOPBACK}:{port}: i/o timeout")

    run(scenario())


def test_a_connection_to_itself_is_none(run: Run) -> None:
    """The kernel connects a socket to its own port when nobody listens there."""

    class OnPort(LocalDialer):
        async def socket(self, network: PodNetwork, family: socket.AddressFamily) -> socket.socket:
            made = await super().socket(network, family)
            made.bind((LOOPBACK, port))
            return made

    port = unused_port()

    async def scenario() -> None:
        async with nothing_left():
            outcome = await probed(tcp(port), dialer=OnPort())
        assert outcome.answer is Answer.FAILURE

    run(scenario())


async def test_no_address_of_that_name() -> None:
    assert await probed(tcp(80, host="no-such-host.invalid")) == ProbeOutcome(
        Answer.FAILURE, "dial tcp: lookup no-such-host.invalid: no such host"
    )


@pytest.mark.parametrize("listening", [LOOPBACK, "::1"])
async def test_all_addresses_of_a_name_are_tried(listening: str) -> None:
    if len({found[0] for found in socket.getaddrinfo("localhost", 80)}) < 2:
        pytest.skip("localhost has only one address here")
    async with serving(silent, host=listening) as port:
        assert await probed(tcp(port, host="localhost")) == SUCCESS


async def test_an_ipv6_address() -> None:
    async with serving(silent, host="::1") as port:
        assert await probed(tcp(port), target(ip="::1")) == SUCCESS
    outcome = await probed(tcp(port), target(ip="::1"))
    assert outcome.output == f"dial tcp [::1]:{port}: connect: connection refused"


async def test_a_pod_without_an_address_is_reached_on_its_loopback() -> None:
    async with serving(silent) as port:
        assert await probed(tcp(port), target(ip="")) == SUCCESS


async def test_a_port_by_name() -> None:
    async with serving(silent) as port:
        container = Container(name="main", ports=(ContainerPort(name="db", container_port=port),))
        assert await probed(tcp("db"), target(container)) == SUCCESS
        with pytest.raises(ProbeError, match='port "web" not found'):
            await probed(tcp("web"), target(container))


@pytest.mark.parametrize("port", [0, -1, 65536])
async def test_no_port(port: int) -> None:
    with pytest.raises(ProbeError, match=f"invalid port number: {port}"):
        await probed(tcp(port))


@pytest.mark.parametrize("dialer", [DeadDialer(), NoDialer()])
async def test_a_dialer_that_is_away_says_nothing_about_the_container(dialer: LocalDialer) -> None:
    with pytest.raises(ProbeError):
        await probed(tcp(80), dialer=dialer)
