"""Podman takes the script for conmon, and cleans up after a container that ended and stays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.config.settings import PodmanSettings, seconds
from tests.harness.raw_libpod import Libpod
from tests.podman_service import IMAGE, PodmanService, running_service, wait_until
from workers.kubecontainer.labels import INSTANCE
from workers.proc.procfs import monitor_option, monitor_words

pytestmark = pytest.mark.podman

DEADLINE_S = 20.0


@pytest.fixture
def libpod(podman_service: PodmanService, tmp_path: Path) -> Iterator[Libpod]:
    """A service with a delay of its own, beside that of all tests."""
    late = PodmanSettings(cleanup_delay_s=seconds("500ms"))
    with running_service(tmp_path, late) as socket, contextlib.closing(Libpod(str(socket))) as libpod:
        yield libpod


def start(libpod: Libpod, podman_service: PodmanService, *command: str) -> str:
    labels = {INSTANCE: podman_service.new_instance()}
    made = libpod.call("POST", "containers/create", {"image": IMAGE, "command": command, "labels": labels})
    id: str = made["Id"]
    libpod.call("POST", f"containers/{id}/start")
    return id


def inspected(libpod: Libpod, id: str) -> dict[str, Any]:
    found: dict[str, Any] = libpod.call("GET", f"containers/{id}/json")
    return found


def test_the_monitor_is_conmon_and_its_words_are_read_as_before(libpod: Libpod, podman_service: PodmanService) -> None:
    id = start(libpod, podman_service, "sleep", "1000")
    words = monitor_words(inspected(libpod, id)["State"]["ConmonPid"])
    assert "--late-cleanup" in words
    assert monitor_option(words, "-c") == id
    assert monitor_option(words, "-b").endswith(f"{id}/userdata")
    libpod.call("DELETE", f"containers/{id}?force=true&timeout=0")


def test_a_container_that_ended_is_cleaned_up(libpod: Libpod, podman_service: PodmanService) -> None:
    """Only the clean-up makes it ``exited``: asked, Podman itself says no more than ``stopped``."""
    id = start(libpod, podman_service, "true")
    wait_until(lambda: inspected(libpod, id)["State"]["Status"] == "exited", DEADLINE_S)
    libpod.call("DELETE", f"containers/{id}?force=true&timeout=0")
