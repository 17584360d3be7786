"""The small formats of /proc and cgroup v2."""

from __future__ import annotations

import pytest

from workers.stats import flat_files
from workers.statsapi.values import Pressure, Stall

NET_DEV = b"""Inter-|   Receive            |  Transmit
 face |bytes    packets errs drop|bytes
    lo:  10  1 0 0 0 0 0 0  10 1 0 0 0 0 0 0
  tap0: 100 11 1 2 0 0 0 0 200 22 3 4 0 0 0 0
  eth0:   5  6 7 8 0 0 0 0   9 10 11 12 0 0 0 0
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, {}),
        (b"usage_usec 5\nuser_usec 3\n", {"usage_usec": 5, "user_usec": 3}),
        (b"bad\nkey value\n", {}),
    ],
)
def test_keyed_lines(text: bytes | None, expected: dict[str, int]) -> None:
    assert flat_files.keyed(text) == expected


def test_meminfo() -> None:
    assert flat_files.keyed(b"MemTotal:   100 kB\nInactive(file):  7 kB\n", b":") == {
        "MemTotal": 100,
        "Inactive(file)": 7,
    }


@pytest.mark.parametrize(("text", "expected"), [(b"12\n", 12), (b"max\n", None), (None, None), (b"-1", None)])
def test_one_number(text: bytes | None, expected: int | None) -> None:
    assert flat_files.number(text) == expected


def test_pressure() -> None:
    text = b"some avg10=1.50 avg60=0.00 avg300=0.25 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"
    assert flat_files.pressure(text) == Pressure(
        some=Stall(total_us=7, avg10=1.5, avg60=0.0, avg300=0.25), full=Stall(total_us=3, avg10=0, avg60=0, avg300=0)
    )


@pytest.mark.parametrize("text", [None, b"", b"some\n", b"full avg10=0 avg60=0 avg300=0 total=1\n", b"some avg10=x\n"])
def test_no_pressure(text: bytes | None) -> None:
    assert flat_files.pressure(text) is None


def test_io_is_that_of_all_devices() -> None:
    text = b"8:0 rbytes=1 wbytes=2 rios=3 wios=4\n8:16 rbytes=10 wbytes=x\n7:0\n"
    assert flat_files.io_bytes(text) == {"rbytes": 11, "wbytes": 2, "rios": 3, "wios": 4}


def test_interfaces_without_the_loopback() -> None:
    found = flat_files.network(NET_DEV, 1.0)
    assert found is not None
    tap, eth = found.interfaces
    assert found.default == "eth0"
    assert (tap.rx_bytes, tap.rx_packets, tap.rx_errors, tap.rx_dropped) == (100, 11, 1, 2)
    assert (eth.tx_bytes, eth.tx_packets, eth.tx_errors, eth.tx_dropped) == (9, 10, 11, 12)


def test_without_eth0_the_first_interface_counts() -> None:
    found = flat_files.network(NET_DEV.replace(b"eth0", b"tap1"), 1.0)
    assert found is not None
    assert found.default == "tap0"


def test_a_process_that_is_gone_has_no_network() -> None:
    assert flat_files.network(b"", 1.0) is None
