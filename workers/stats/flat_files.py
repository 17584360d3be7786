"""The small formats of /proc and cgroup v2: keyed lines, pressure, interfaces. Pure, but for `read`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final

from ipc.stats.values import Interface, Network, Pressure, Stall

MAX_BYTES: Final = 256 * 1024
"""Most that is read of a file: the kernel writes them, and a container decides how many interfaces it has."""
MAX_INTERFACES: Final = 32
"""Most interfaces of one network namespace that are told of."""
LOOPBACK: Final = "lo"
FIRST_CHOICE: Final = "eth0"
"""The interface whose figures are those of a pod, as upstream (cAdvisor's DefaultNetworkInterface); without it the
first one, such as slirp4netns' tap0."""
_HEADER_LINES: Final = 2


def read(path: str) -> bytes | None:
    """Content of a short file; None when it is not there or not to be read. One read of a file that the kernel makes
    line by line ends at a page."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(MAX_BYTES)
    return None


def keyed(text: bytes | None, separator: bytes | None = None) -> Mapping[str, int]:
    """Lines of a key and a number, such as memory.stat and /proc/vmstat; with ``:`` behind the key /proc/meminfo."""
    found: dict[str, int] = {}
    for line in (text or b"").splitlines():
        key, _, rest = line.partition(separator or b" ")
        number = rest.split(None, 1)
        if number and number[0].isdigit():
            found[key.decode(errors="replace")] = int(number[0])
    return found


def number(text: bytes | None) -> int | None:
    """A file with one number; None for *max* and when it is not there."""
    stripped = (text or b"").strip()
    return int(stripped) if stripped.isdigit() else None


def pressure(text: bytes | None) -> Pressure | None:
    """A pressure file; None when the kernel has none (the file is absent, or cannot be read because PSI is off)."""
    stalls: dict[str, Stall] = {}
    for line in (text or b"").decode(errors="replace").splitlines():
        kind, *fields = line.split()
        values = dict(field.partition("=")[::2] for field in fields)
        with contextlib.suppress(KeyError, ValueError):
            stalls[kind] = Stall(
                total_us=int(values["total"]),
                avg10=float(values["avg10"]),
                avg60=float(values["avg60"]),
                avg300=float(values["avg300"]),
            )
    return Pressure(some=stalls["some"], full=stalls.get("full")) if "some" in stalls else None


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
