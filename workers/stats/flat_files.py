"""The small formats of /proc and cgroup v2: keyed lines, pressure, interfaces. Pure, but for `read`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from workers.statsapi.values import Interface, Network, Pressure, Stall

MAX_BYTES: Final = 256 * 1024
"""Most that is read of a file: the kernel writes them, and a container decides how many interfaces it has."""
RECORD_BYTES: Final = 16 * 1024
"""More than any file has that the kernel makes in one piece."""
MAX_INTERFACES: Final = 32
"""Most interfaces of one network namespace that are told of."""
LOOPBACK: Final = "lo"
FIRST_CHOICE: Final = "eth0"
"""The interface whose figures are those of a pod, as upstream (cAdvisor's DefaultNetworkInterface); without it the
first one, such as slirp4netns' tap0."""
_HEADER_LINES: Final = 2
_STALL: Final = re.compile(
    rb"^(some|full) avg10=(\d+\.\d+) avg60=(\d+\.\d+) avg300=(\d+\.\d+) total=(\d+)$", re.MULTILINE
)
"""A line of a pressure file (Documentation/accounting/psi.rst)."""


def read(path: str) -> bytes | None:
    """Content of a short file; None when it is not there or not to be read. One read of a file that the kernel makes
    line by line ends at a page. A file object would cost as much as the reading: there are thousands."""
    return _read(path, MAX_BYTES)


def read_record(path: str) -> bytes | None:
    """Content of a file that the kernel makes in one piece, such as a cgroup's memory.stat: one read has it all."""
    return _read(path, RECORD_BYTES)


def _read(path: str, enough: int) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = chunk = os.read(fd, RECORD_BYTES)
        while chunk and enough > RECORD_BYTES and len(text) < enough:
            chunk = os.read(fd, RECORD_BYTES)
            text += chunk
        return text
    except OSError:
        return None
    finally:
        os.close(fd)


def keyed(text: bytes | None, separator: bytes | None = None) -> Mapping[str, int]:
    """Lines of a key and a number, such as memory.stat and /proc/vmstat; with ``:`` behind the key /proc/meminfo."""
    found: dict[str, int] = {}
    for line in (text or b"").splitlines():
        key, _, rest = line.partition(separator or b" ")
        number = rest.split(None, 1)
        if number and number[0].isdigit():
            found[key.decode(errors="replace")] = int(number[0])
    return found


def pairs(text: bytes | None) -> Mapping[bytes, bytes]:
    """Words of a file that has nothing but pairs, such as a cgroup's memory.stat, in a fraction of the time."""
    words = (text or b"").split()
    return dict(zip(words[::2], words[1::2], strict=False))


def number(text: bytes | None) -> int | None:
    """A file with one number; None for *max* and when it is not there."""
    stripped = (text or b"").strip()
    return int(stripped) if stripped.isdigit() else None


def pressure(text: bytes | None) -> Pressure | None:
    """A pressure file; None when the kernel has none (the file is absent, or cannot be read because PSI is off)."""
    stalls = {
        kind: Stall(total_us=int(total), avg10=float(avg10), avg60=float(avg60), avg300=float(avg300))
        for kind, avg10, avg60, avg300, total in _STALL.findall(text or b"")
    }
    return Pressure(some=stalls[b"some"], full=stalls.get(b"full")) if b"some" in stalls else None


def io_bytes(text: bytes | None) -> Mapping[str, int]:
    """io.stat, added up over all devices: rbytes, wbytes, rios, wios."""
    sums: dict[str, int] = {}
    for line in (text or b"").decode(errors="replace").splitlines():
        for field in line.split()[1:]:
            key, _, value = field.partition("=")
            if value.isdigit():
                sums[key] = sums.get(key, 0) + int(value)
    return sums


def network(text: bytes | None, time: float) -> Network | None:
    """/proc/PID/net/dev without the loopback; None when the process is gone."""
    if not text:
        return None
    interfaces: list[Interface] = []
    for line in text.decode(errors="replace").splitlines()[_HEADER_LINES:][: MAX_INTERFACES + 1]:
        name, _, rest = line.partition(":")
        counters = rest.split()
        if name.strip() == LOOPBACK or len(counters) < 12:
            continue
        rx, tx = tuple(map(int, counters[:4])), tuple(map(int, counters[8:12]))
        interfaces.append(
            Interface(
                name=name.strip(),
                rx_bytes=rx[0],
                rx_packets=rx[1],
                rx_errors=rx[2],
                rx_dropped=rx[3],
                tx_bytes=tx[0],
                tx_packets=tx[1],
                tx_errors=tx[2],
                tx_dropped=tx[3],
            )
        )
    names = [interface.name for interface in interfaces]
    default = FIRST_CHOICE if FIRST_CHOICE in names else next(iter(names), "")
    return Network(time=time, interfaces=tuple(interfaces), default=default)
