"""Addresses in text: leading zeros are decimal, and nothing else is more lenient than Go."""

from __future__ import annotations

import pytest

from ipc.host.text.ip_address import parse_ip, without_leading_zeros


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.000.00.01", "10.0.0.1"),
        ("127.0.0.08", "127.0.0.8"),
        ("00000000192.168.001.010", "192.168.1.10"),
        ("::ffff:010.0.0.1", "10.0.0.1"),
        ("64:ff9b::192.000.002.1", "64:ff9b::c000:201"),
        ("FE80::0001", "fe80::1"),
    ],
)
def test_zeros_are_stripped(text: str, address: str) -> None:
    assert str(parse_ip(text)) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.2.3",
        "1.2.3.0256",
        "0x10.0.0.1",
        "1.2.3.4.05",
        " 01.2.3.4",
        "01.2.3.4\n",
        "a01.2.3.4",
        "\u0661.2.3.4",
        "fe80::1%eth0",
        "::00001",
        "1:2:3:4:5:6:7:8:9",
        "[::1]",
        "01.2.3.4/24",
    ],
)
def test_what_go_refuses_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_ip(text)


def test_only_leading_zeros_go() -> None:
    assert without_leading_zeros("100.0.010.00") == "100.0.10.0"
    assert without_leading_zeros("::1") == "::1"
    assert without_leading_zeros("host.example") == "host.example"
