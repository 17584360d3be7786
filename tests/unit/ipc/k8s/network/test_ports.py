"""Ports behind their hosts."""

from __future__ import annotations

from ipc.k8s.network.ports import join_host_port


def test_only_an_ipv6_address_gets_brackets() -> None:
    assert [join_host_port(host, 80) for host in ("10.0.0.1", "::1", "example.org")] == [
        "10.0.0.1:80",
        "[::1]:80",
        "example.org:80",
    ]
