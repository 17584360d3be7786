"""Addresses of a process's network, told by the kernel without entering it: /proc/PID/net needs no privilege;
and which of them are the host's.

Podman tells addresses on bridges only. With slirp4netns and pasta it knows none, although the pod has one.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
import re
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

PROC: Final = "/proc"
MAX_TABLE_BYTES: Final = 1 << 20
"""Most that is read of one table: thousands of addresses."""
PIECE_BYTES: Final = 16 * 1024
"""Most that is read at a time."""
_GLOBAL_SCOPE: Final = "00"
"""Column 4 of if_inet6: neither link-local nor the loopback's."""
_UNUSABLE: Final = 0x48
"""Flags in column 5 of if_inet6: tentative or found twice (IFA_F_TENTATIVE, IFA_F_DADFAILED)."""
_LOOPBACK: Final = "127."
_LOCAL_ENTRY: Final = re.compile(r"\|-- (?P<address>[0-9.]+)\n\s*/32 host LOCAL")

_SIOCGIFADDR: Final = 0x8915
_IFREQ_BYTES: Final = 40
_IFREQ_ADDRESS: Final = slice(20, 24)
_FAR_AWAY: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""By address family in the order in which they are named: documentation's addresses, which nobody has."""


class InterfaceAddress(NamedTuple):
    """An address of an interface."""

    device: str
    address: str


def addresses_of(pid: int) -> tuple[str, ...]:
    """The addresses of that process's network but for the loopback's, IPv4 first; none when it has ended."""
    return (
        *parse_fib_trie(_text(f"{PROC}/{pid}/net/fib_trie")),
        *(each.address for each in parse_if_inet6(_text(f"{PROC}/{pid}/net/if_inet6"))),
    )


def parse_fib_trie(text: str) -> tuple[str, ...]:
    """IPv4 addresses out of /proc/net/fib_trie, which shows each in more than one table."""
    found = dict.fromkeys(entry["address"] for entry in _LOCAL_ENTRY.finditer(text))
    return tuple(address for address in found if not address.startswith(_LOOPBACK))


def parse_if_inet6(text: str) -> tuple[InterfaceAddress, ...]:
    """IPv6 addresses out of /proc/net/if_inet6, those that can be used from elsewhere."""
    rows = (line.split() for line in text.splitlines())
    usable = (row for row in rows if len(row) == 6 and row[3] == _GLOBAL_SCOPE and not int(row[4], 16) & _UNUSABLE)
    return tuple(InterfaceAddress(row[5], socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0]))) for row in usable)


def node_ips() -> tuple[str, ...]:
    """This host's addresses as `choose_node_ips` has them, as they are now. Raises OSError."""
    routed = {family: ip for family, far in _FAR_AWAY.items() if (ip := _source_address(family, far))}
    present = (*_ipv4_addresses(), *parse_if_inet6(_own_inet6()))
    return choose_node_ips(routed, present)


def choose_node_ips(routed: Mapping[socket.AddressFamily, str], present: Iterable[InterfaceAddress]) -> tuple[str, ...]:
    """One address of each family, IPv4 first: that of outgoing traffic; in a family without a default route, one of the
    interface that has it in the other family; without any, the first one there is. Loopback never counts.

    Upstream: pkg/kubelet/nodestatus/setters.go, NodeAddress, and apimachinery's net.ResolveBindAddress.
    """
    usable = [each for each in present if not ipaddress.ip_address(each.address).is_loopback]
    devices = {each.device for each in usable if each.address in routed.values()}
    near = [each.address for each in usable if not devices or each.device in devices]
    chosen = (
        routed.get(family) or next((address for address in near if (":" in address) == (family == socket.AF_INET6)), "")
        for family in _FAR_AWAY
    )
    return tuple(filter(None, chosen))


def _source_address(family: socket.AddressFamily, far: str) -> str:
    """Source address of outgoing traffic; empty without a route. No packet is sent: connect(2) on a datagram socket."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((far, 9))
        source = str(probe.getsockname()[0])
        return "" if ipaddress.ip_address(source).is_loopback else source
    return ""


def _ipv4_addresses() -> Iterator[InterfaceAddress]:
    """The first one of each interface that has any (netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, device in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has none, or has just gone
                answer = fcntl.ioctl(asking, _SIOCGIFADDR, struct.pack(f"{_IFREQ_BYTES}s", device.encode()))
                yield InterfaceAddress(device, socket.inet_ntoa(answer[_IFREQ_ADDRESS]))


def _own_inet6() -> str:
    """Raises OSError where that is not known: a host without descriptors has its addresses all the same."""
    try:
        fd = os.open(f"{PROC}/self/net/if_inet6", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        return _begin_of(fd).decode(errors="replace")
    finally:
        os.close(fd)


def _text(path: str) -> str:
    """Empty when there is no such process, or no such family in this kernel."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return _begin_of(fd).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def _begin_of(fd: int) -> bytes:
    """The first MAX_TABLE_BYTES, in pieces: memory for all of them at once would be mapped and unmapped each time."""
    table = b""
    while len(table) < MAX_TABLE_BYTES and (piece := os.read(fd, PIECE_BYTES)):
        table += piece
    return table[:MAX_TABLE_BYTES]
