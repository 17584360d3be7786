"""Addresses of a process's network, read from /proc/PID/net, which needs no privilege.

Podman shows addresses on bridges only: with slirp4netns and pasta none, although the pod has one.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Final

from workers.proc.procfs import PROC

MAX_TABLE_BYTES: Final = 1 << 20
"""Most that is read of one table: thousands of addresses."""
_GLOBAL_SCOPE: Final = "00"
"""Column 4 of if_inet6: neither link-local nor the loopback's."""
_UNUSABLE: Final = 0x48
"""Flags in column 5 of if_inet6: tentative or found twice (IFA_F_TENTATIVE, IFA_F_DADFAILED)."""
_LOCAL_ENTRY: Final = re.compile(r"\|-- (?P<address>[0-9.]+)\n\s*/32 host LOCAL")


def addresses_of(pid: int) -> tuple[str, ...]:
    """The addresses of that process's network but for the loopback's, IPv4 first; none when it has ended."""
    net = PROC / str(pid) / "net"
    return (*parse_fib_trie(_text(net / "fib_trie")), *parse_if_inet6(_text(net / "if_inet6")))


def parse_fib_trie(text: str) -> tuple[str, ...]:
    """IPv4 addresses out of /proc/net/fib_trie, which shows each in more than one table."""
    found = dict.fromkeys(entry["address"] for entry in _LOCAL_ENTRY.finditer(text))
    return tuple(address for address in found if not ipaddress.IPv4Address(address).is_loopback)


def parse_if_inet6(text: str) -> tuple[str, ...]:
    """IPv6 addresses out of /proc/net/if_inet6, those that can be used from elsewhere."""
    rows = (line.split() for line in text.splitlines())
    usable = (row[0] for row in rows if len(row) == 6 and row[3] == _GLOBAL_SCOPE and not int(row[4], 16) & _UNUSABLE)
    return tuple(str(ipaddress.IPv6Address(int(digits, 16))) for digits in usable)


def _text(path: Path) -> str:
    """Empty when there is no such process, or no such family in this kernel."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_TABLE_BYTES).decode(errors="replace")
    except OSError:
        return ""
