"""Addresses of the node that an operator states. Pure.

Mirrors ParseNodeIPArgument (staging/src/k8s.io/component-helpers/node/util/ips.go) and validateNodeIP
(pkg/kubelet/kubelet_node_status.go).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Sequence
from typing import Final

MAX_PORT: Final = 65_535
_SOCKET_ADDRESS: Final = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]{2,45})\]|(?P<v4>[0-9.]{7,15})):(?P<port>[0-9]{1,5})")
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class NodeIpError(ValueError):
    """An address that a node cannot have."""


def parse_node_ips(text: str) -> tuple[str, ...]:
    """One address, or one of each family with a comma between them; empty: none. Raises NodeIpError."""
    if not text:
        return ()
    found = [_address(part.strip()) for part in text.split(",", 2)]
    if len(found) > 2 or (len(found) == 2 and found[0].version == found[1].version):
        raise NodeIpError("must contain either a single IP or a dual-stack pair of IPs")
    if len(found) == 2 and any(each.is_unspecified for each in found):
        raise NodeIpError(f"dual-stack {text!r} cannot include '0.0.0.0' or '::'")
    for each in found:
        if not each.is_unspecified:
            check_kind(str(each))
    return tuple(map(str, found))


def node_ip_problem(text: str) -> str:
    """Error about the addresses; empty when there is none."""
    try:
        parse_node_ips(text)
    except NodeIpError as error:
        return str(error)
    return ""


def parse_socket_address(text: str) -> tuple[str, int]:
    """``192.0.2.1:6443`` or ``[2001:db8::1]:6443``. Raises NodeIpError."""
    match = _SOCKET_ADDRESS.fullmatch(text)
    port = int(match["port"]) if match else 0
    if match is None or not 0 < port <= MAX_PORT:
        raise NodeIpError("must be an IP address and a port, such as 192.0.2.1:6443")
    address = str(_address(match["v6"] or match["v4"]))
    return address, port


def socket_address_problem(text: str) -> str:
    """Error about an address with a port, or empty; nothing is an address, too."""
    try:
        if text:
            parse_socket_address(text)
    except NodeIpError as error:
        return str(error)
    return ""


def check_kind(text: str) -> None:
    """Raises NodeIpError for an address of a kind that no other host reaches."""
    address = _address(text)
    if address.is_loopback:
        raise NodeIpError("nodeIP can't be loopback address")
    if address.is_multicast:
        raise NodeIpError("nodeIP can't be a multicast address")
    if address.is_link_local:
        raise NodeIpError("nodeIP can't be a link-local unicast address")
    if address.is_unspecified:
        raise NodeIpError("nodeIP can't be an all zeros address")


def validate_node_ip(text: str, host_ips: Collection[str]) -> None:
    """Raises NodeIpError for an address that the host does not have, or that is of the wrong kind."""
    check_kind(text)
    if _address(text) not in {ipaddress.ip_address(each) for each in host_ips}:
        raise NodeIpError(f'node IP: "{text}" not found in the host\'s network interfaces')


def chosen_node_ips(stated: Sequence[str], found: Sequence[str]) -> tuple[str, ...]:
    """Addresses of the node (setters.go, NodeAddress): those stated, else those found on the host. One of all zeros
    chooses the family of the latter."""
    if len(stated) == 1 and (first := _address(stated[0])).is_unspecified:
        same = [each for each in found if _address(each).version == first.version]
        return tuple(same)
    return tuple(stated or found)


def node_ip_on_host_problem(text: str, host_ips: Collection[str]) -> str:
    """Error about an address that this host should have, or empty; all zeros stand for the host's own choice."""
    if _address(text).is_unspecified:
        return ""
    try:
        validate_node_ip(text, host_ips)
    except NodeIpError as error:
        return str(error)
    return ""


def _address(text: str) -> IpAddress:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise NodeIpError("nodeIP must be a valid IP address") from None
