"""Fixtures of all suites."""

import gc
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.support.deep_trees import deep_path
from tests.support.memory_directory import memory
from tests.support.podman_service import podman_service

__all__ = ["deep_path", "memory", "podman_service"]

# No example fails by the clock of a busy machine. The same examples are tried every time: a change fails by its own
# fault only. `make test-slow` looks for new ones.
settings.register_profile("same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("explore", settings.get_profile("same"), derandomize=False, max_examples=1000)
settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    """podman-py does not close a socket that could not connect; it goes with the exception, whenever that is."""
    config.addinivalue_line("filterwarnings", r"ignore:unclosed <podman\.api\.uds\.UDSSocket:ResourceWarning")


def pytest_collection_finish() -> None:
    """Thousands of tests and the modules of the product stay: no search for garbage has to walk through them again."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart() -> None:
    """A shell starts what runs in the background with SIGINT ignored, and children would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
