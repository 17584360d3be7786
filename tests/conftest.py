"""Fixtures of all suites."""

from tests.podman_service import podman_service

__all__ = ["podman_service"]
