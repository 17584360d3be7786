"""Addresses that an operator states for the node."""

from __future__ import annotations

import pytest

from ipc.k8s.nodestatus.node_ip import (
    NodeIpError,
    chosen_node_ips,
    node_ip_on_host_problem,
    node_ip_problem,
    parse_node_ips,
    parse_socket_address,
    socket_address_problem,
    validate_node_ip,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("192.0.2.1", ("192.0.2.1",)),
        ("2001:DB8::1, 192.0.2.1", ("2001:db8::1", "192.0.2.1")),
        ("0.0.0.0", ("0.0.0.0",)),
        ("::", ("::",)),
    ],
)
def test_one_address_or_one_of_each_family(text: str, found: tuple[str, ...]) -> None:
    assert parse_node_ips(text) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "must be a valid IP address"),
        ("192.0.2.1,", "must be a valid IP address"),
        ("192.0.2.1,192.0.2.2", "dual-stack pair"),
        ("192.0.2.1,2001:db8::1,2001:db8::2", "dual-stack pair"),
        ("0.0.0.0,2001:db8::1", "cannot include"),
        ("169.254.1.1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("::1", "loopback"),
        ("1" * 100_000, "must be a valid IP address"),
    ],
)
def test_other_texts_are_named(text: str, problem: str) -> None:
    assert problem in node_ip_problem(text)


def test_an_address_is_one_of_the_hosts() -> None:
    validate_node_ip("2001:db8:0::1", ["192.0.2.1", "2001:db8::1"])
    with pytest.raises(NodeIpError, match="not found in the host"):
        validate_node_ip("192.0.2.9", ["192.0.2.1"])
    assert node_ip_on_host_problem("0.0.0.0", []) == ""
    assert "not found" in node_ip_on_host_problem("192.0.2.9", [])


@pytest.mark.parametrize(
    ("text", "found"),
    [("192.0.2.1:6443", ("192.0.2.1", 6443)), ("[2001:DB8::1]:443", ("2001:db8::1", 443))],
)
def test_an_address_with_a_port(text: str, found: tuple[str, int]) -> None:
    assert parse_socket_address(text) == found
    assert socket_address_problem(text) == ""


@pytest.mark.parametrize(
    "text", ["192.0.2.1", "192.0.2.1:0", "192.0.2.1:65536", "2001:db8::1:443", "999.0.0.1:1", "a:1", "1" * 100_000]
)
def test_what_is_none_is_named(text: str) -> None:
    assert socket_address_problem(text)


@pytest.mark.parametrize(
    ("stated", "chosen"),
    [
        ((), ("192.0.2.1", "2001:db8::1")),
        (("0.0.0.0",), ("192.0.2.1",)),
        (("::",), ("2001:db8::1",)),
        (("192.0.2.7",), ("192.0.2.7",)),
        (("2001:db8::7", "192.0.2.7"), ("2001:db8::7", "192.0.2.7")),
    ],
)
def test_stated_addresses_go_before_those_found(stated: tuple[str, ...], chosen: tuple[str, ...]) -> None:
    assert chosen_node_ips(stated, ("192.0.2.1", "2001:db8::1")) == chosen
