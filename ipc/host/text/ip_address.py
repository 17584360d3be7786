"""IP addresses in text, as Kubernetes reads them (k8s.io/utils/net, ParseIPSloppy). Pure."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NUMBER: Final = r"0*(0|[1-9][0-9]*)"
_DOTTED: Final = re.compile(rf"(^|:){_NUMBER}\.{_NUMBER}\.{_NUMBER}\.{_NUMBER}\Z")


def without_leading_zeros(text: str) -> str:
    """The same address, in decimal numbers as everybody reads them: C libraries take 010 for octal, or refuse it."""
    return _DOTTED.sub(r"\1\2.\3.\4.\5", text)


def parse_ip(text: str) -> IpAddress:
    """An address, of which numbers may have leading zeros; one of IPv4 that is mapped into IPv6 is one of IPv4, as
    net.IP.To4 has it. Raises ValueError, also for an address with a zone."""
    address = ipaddress.ip_address(without_leading_zeros(text))
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.scope_id is not None:
        raise ValueError(f"{text!r} has a zone")
    return address.ipv4_mapped or address
