"""Podman takes the script for conmon, and cleans up after a container that ended and stays."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.podman_service import IMAGE, PodmanService, wait_until
from tests.support.raw_libpod import Libpod
from workers.kubecontainer.labels import INSTANCE
from workers.kubecontainer.runtime import ContainerProcess
from workers.podman_files.monitor import dismiss_monitor, has_monitor, monitor_option, monitor_words
from workers.proc import procfs

pytestmark = pytest.mark.podman

DEADLINE_S = 20.0


@pytest.fixture
def libpod(podman_service: PodmanService) -> Iterator[Libpod]:
    with contextlib.closing(Libpod(podman_service.socket)) as libpod:
        yield libpod


def start(libpod: Libpod, podman_service: PodmanService, *command: str) -> str:
    labels = {INSTANCE: podman_service.new_instance()}
    made = libpod.call("POST", "containers/create", {"image": IMAGE, "command": command, "labels": labels})
    id: str = made["Id"]
    libpod.call("POST", f"containers/{id}/start")
    return id


def remove(libpod: Libpod, id: str) -> None:
    libpod.call("DELETE", f"containers/{id}?force=true&timeout=0")


def state(libpod: Libpod, id: str) -> dict[str, Any]:
    found: dict[str, Any] = libpod.call("GET", f"containers/{id}/json")["State"]
    return found


def test_the_monitor_is_conmon_and_its_words_are_read_as_before(libpod: Libpod, podman_service: PodmanService) -> None:
    id = start(libpod, podman_service, "sleep", "1000")
    words = monitor_words(state(libpod, id)["ConmonPid"])
    assert "--late-cleanup" in words
    assert monitor_option(words, "-c") == id
    assert monitor_option(words, "-b").endswith(f"{id}/userdata")
    remove(libpod, id)


def test_a_container_that_ended_is_cleaned_up(libpod: Libpod, podman_service: PodmanService) -> None:
    """Only the clean-up makes it ``exited``: asked, Podman itself says no more than ``stopped``."""
    id = start(libpod, podman_service, "true")
    wait_until(lambda: state(libpod, id)["Status"] == "exited", DEADLINE_S)
    remove(libpod, id)


def test_a_monitor_that_is_killed_before_the_clean_up_takes_nothing_along(
    libpod: Libpod, podman_service: PodmanService
) -> None:
    """As a clean-up that is killed: the end and its exit code stay known, and the removal makes up for it."""
    id = start(libpod, podman_service, "sh", "-c", "sleep 1; exit 7")
    monitor = state(libpod, id)["ConmonPid"]
    wait_until(lambda: state(libpod, id)["Status"] != "running", DEADLINE_S)
    with contextlib.suppress(ProcessLookupError):
        os.kill(monitor, signal.SIGKILL)
    ended = state(libpod, id)
    assert (ended["Status"] in ("stopped", "exited"), ended["ExitCode"]) == (True, 7)
    remove(libpod, id)


def test_a_monitor_is_dismissed_once_it_has_recorded_the_end_and_nobody_cleans_up(
    libpod: Libpod, podman_service: PodmanService
) -> None:
    """The bundle of a container that was cleaned up after has no exit file any more: the one of the dismissed has."""
    id = start(libpod, podman_service, "sleep", "1000")
    shown = state(libpod, id)
    process = ContainerProcess(container_id=id, pid=shown["Pid"], monitor_pid=shown["ConmonPid"])
    dismiss_monitor(process)
    assert has_monitor(process), "it runs"
    record = Path(monitor_option(monitor_words(process.monitor_pid), "--exit-dir"), id)
    os.kill(process.pid, signal.SIGKILL)
    wait_until(record.exists, DEADLINE_S)
    dismiss_monitor(process)
    wait_until(lambda: not any(id in monitor_words(pid) for pid in procfs.pids()), DEADLINE_S)  # who would clean up
    assert record.exists()
    ended = state(libpod, id)
    assert (ended["Status"], ended["ExitCode"]) == ("stopped", 137)
    remove(libpod, id)
    assert not record.exists()


def test_another_container_starts_while_one_that_ended_waits(libpod: Libpod, podman_service: PodmanService) -> None:
    """The clean-up of the one that ended, which comes later, is its own alone."""
    first = start(libpod, podman_service, "true")
    second = start(libpod, podman_service, "sh", "-c", "while :; do true; sleep 0.1; done")
    wait_until(lambda: state(libpod, first)["Status"] == "exited", DEADLINE_S)
    assert state(libpod, second)["Status"] == "running"
    for id in (first, second):
        remove(libpod, id)
