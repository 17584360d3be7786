"""Listening ends of TCP ports, as the master makes them."""

from __future__ import annotations

import socket

import pytest

from supervisor.processes.listeners import listen_tcp


def test_connections_wait_until_somebody_takes_them() -> None:
    with listen_tcp("127.0.0.1", 0) as listening:
        assert not listening.getblocking()
        with socket.create_connection(listening.getsockname()[:2], 5):
            listening.settimeout(5)
            taken, _ = listening.accept()
            taken.close()


def test_a_port_that_is_taken_is_named() -> None:
    with listen_tcp("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(OSError, match=rf"port {port} of 127\.0\.0\.1"):
            listen_tcp("127.0.0.1", port)


def test_all_addresses_of_both_families() -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this host has no IPv6")
    with listen_tcp("::", 0) as listening:
        port = listening.getsockname()[1]
        for address in ("127.0.0.1", "::1"):
            socket.create_connection((address, port), 5).close()
