"""Fixtures of all suites."""

import signal

import pytest

from tests.podman_service import podman_service

__all__ = ["podman_service"]


def pytest_configure(config: pytest.Config) -> None:
    """podman-py does not close a socket that could not connect; it goes with the exception, whenever that is."""
    config.addinivalue_line("filterwarnings", r"ignore:unclosed <podman\.api\.uds\.UDSSocket:ResourceWarning")


def pytest_sessionstart() -> None:
    """A shell starts what runs in the background with SIGINT ignored, and children would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
