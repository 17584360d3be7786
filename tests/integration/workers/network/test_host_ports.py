"""Ports of the host that another program has, on the kernel's own sockets."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ipc.k8s.network.ports import PortMapping
from tests.support.servers.local_servers import unused_port
from workers.network.host_ports import port_problem

TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
V4, V6 = socket.AF_INET, socket.AF_INET6


def mapping(port: int, host_ip: str = "", protocol: str = "TCP") -> PortMapping:
    return PortMapping(container_port=80, host_port=port, host_ip=host_ip, protocol=protocol)


@pytest.fixture
def stranger(request: pytest.FixtureRequest) -> Iterator[int]:
    """Port of a program that has it on that address."""
    family, type, address = request.param
    with socket.socket(family, type) as taken:
        if family == V6:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address != "::")
        taken.bind((address, unused_port(type)))
        if type == TCP:
            taken.listen()
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    ("stranger", "wanted", "words"),
    [
        ((V4, TCP, "0.0.0.0"), ("", "TCP"), "listen tcp :{}: bind: address already in use"),
        ((V4, TCP, "127.0.0.1"), ("", "TCP"), "listen tcp :{}: bind: address already in use"),
        ((V4, TCP, "127.0.0.1"), ("127.0.0.1", "TCP"), "listen tcp 127.0.0.1:{}: bind: address already in use"),
        ((V4, TCP, "127.0.0.1"), ("127.0.0.2", "TCP"), ""),
        ((V4, TCP, "0.0.0.0"), ("", "UDP"), ""),
        ((V4, UDP, "0.0.0.0"), ("", "UDP"), "listen udp :{}: bind: address already in use"),
        ((V4, UDP, "127.0.0.1"), ("127.0.0.1", "UDP"), "listen udp 127.0.0.1:{}: bind: address already in use"),
        ((V6, TCP, "::1"), ("::1", "TCP"), "listen tcp [::1]:{}: bind: address already in use"),
        ((V6, TCP, "::"), ("", "TCP"), "listen tcp :{}: bind: address already in use"),
        ((V6, TCP, "::1"), ("127.0.0.1", "TCP"), ""),
    ],
    indirect=["stranger"],
)
def test_a_port_of_another_program_is_told_as_go_tells_it(stranger: int, wanted: tuple[str, str], words: str) -> None:
    free = mapping(unused_port())
    assert port_problem((free, mapping(stranger, *wanted)), both_families=False) == words.format(stranger)


@pytest.mark.parametrize("stranger", [(V6, TCP, "::1"), (V6, UDP, "::1"), (V4, TCP, "127.0.0.1")], indirect=True)
def test_on_a_bridge_a_port_is_wanted_in_both_families(stranger: int, request: pytest.FixtureRequest) -> None:
    family, type, _ = request.node.callspec.params["stranger"]
    protocol = "TCP" if type == TCP else "UDP"
    wanted = (mapping(stranger, protocol=protocol),)
    words = f"listen {protocol.lower()} :{stranger}: bind: address already in use"
    assert port_problem(wanted, both_families=True) == words
    assert port_problem(wanted, both_families=False) == ("" if family == V6 else words)


def test_a_port_that_is_free_is_free_again() -> None:
    port = unused_port()
    both = (mapping(port), mapping(port, protocol="UDP"))
    assert [port_problem(both, both_families=families) for families in (True, False, True)] == [""] * 3
    with socket.create_server(("127.0.0.1", port)) as server, socket.create_connection(("127.0.0.1", port)):
        server.accept()[0].close()  # first, so that its side of the connection waits
    assert port_problem((mapping(port),), both_families=True) == ""


def test_an_address_that_is_not_the_hosts_cannot_be_had() -> None:
    problem = port_problem((mapping(8080, "203.0.113.77"),), both_families=True)
    assert problem == "listen tcp 203.0.113.77:8080: bind: cannot assign requested address"


def test_what_podman_forwards_never_is_not_asked_for() -> None:
    assert port_problem((mapping(80, protocol="SCTP"),), both_families=True) == ""
