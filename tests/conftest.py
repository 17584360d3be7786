"""Fixtures of all suites."""

import pytest

from tests.podman_service import podman_service

__all__ = ["podman_service"]


def pytest_configure(config: pytest.Config) -> None:
    """podman-py does not close a socket that could not connect; it goes with the exception, whenever that is."""
    config.addinivalue_line("filterwarnings", r"ignore:unclosed <podman\.api\.uds\.UDSSocket:ResourceWarning")
