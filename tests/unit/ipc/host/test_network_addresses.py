"""Addresses of a network, as the kernel's tables show them."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

import pytest

from ipc.host.network_addresses import (
    InterfaceAddress,
    addresses_of,
    choose_node_ips,
    node_ips,
    parse_fib_trie,
    parse_if_inet6,
)

FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
     +-- 10.0.2.0/24 2 0 1
        |-- 10.0.2.0
           /24 link UNICAST
        |-- 10.0.2.100
           /32 host LOCAL
        |-- 10.0.2.255
           /32 link BROADCAST
Local:
  +-- 0.0.0.0/0 3 0 5
     +-- 10.0.2.0/24 2 0 1
        |-- 10.0.2.100
           /32 host LOCAL
"""
IF_INET6 = """\
fe8000000000000000fc00fffe000001 04 40 20 80     tap0
fd000000000000000000000000000002 04 40 00 82     tap0
fd000000000000000000000000000003 04 40 00 c0     tap0
fd000000000000000000000000000004 04 40 00 08     tap0
00000000000000000000000000000001 01 80 10 80       lo
"""


def test_ipv4() -> None:
    assert parse_fib_trie(FIB_TRIE) == ("10.0.2.100",)
    assert parse_fib_trie("") == ()


def test_ipv6_that_can_be_used_from_elsewhere() -> None:
    assert parse_if_inet6(IF_INET6) == (InterfaceAddress("tap0", "fd00::2"),), "tentative and duplicate ones cannot"


def test_of_a_process() -> None:
    assert not any(address.startswith("127.") for address in addresses_of(os.getpid()))
    assert addresses_of(2**22 + 1) == ()


V4, V6 = socket.AF_INET, socket.AF_INET6
LOOPBACK = (InterfaceAddress("lo", "127.0.0.1"), InterfaceAddress("lo", "::1"))
BRIDGE = (InterfaceAddress("docker0", "172.17.0.1"), InterfaceAddress("docker0", "fd17::1"))
WIRE = (InterfaceAddress("eth0", "192.0.2.2"), InterfaceAddress("eth0", "fd00::2"))


@pytest.mark.parametrize(
    ("routed", "present", "chosen"),
    [
        ({V4: "192.0.2.2", V6: "fd00::3"}, (*BRIDGE, *WIRE), ("192.0.2.2", "fd00::3")),
        ({V4: "192.0.2.2"}, (*LOOPBACK, *BRIDGE, *WIRE), ("192.0.2.2", "fd00::2")),
        ({V4: "192.0.2.2"}, (*BRIDGE, WIRE[0]), ("192.0.2.2",)),
        ({V6: "fd00::2"}, (*BRIDGE, *WIRE), ("192.0.2.2", "fd00::2")),
        ({}, (*LOOPBACK, *WIRE), ("192.0.2.2", "fd00::2")),
        ({}, LOOPBACK, ()),
        ({}, (), ()),
    ],
    ids=["both routed", "the same interface", "one family", "IPv6 routed", "no route", "only loopback", "nothing"],
)
def test_one_address_of_each_family(
    routed: Mapping[socket.AddressFamily, str], present: tuple[InterfaceAddress, ...], chosen: tuple[str, ...]
) -> None:
    assert choose_node_ips(routed, present) == chosen


def test_this_hosts_addresses_are_its_interfaces() -> None:
    assert set(node_ips()) <= set(addresses_of(os.getpid()))
