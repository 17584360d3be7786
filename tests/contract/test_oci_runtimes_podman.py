"""Podman services of other OCI runtimes: each makes containers, and is there no longer than for that."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from tests.support.podman_service import PodmanService, podman
from workers import oci_runtimes
from workers.kubecontainer.labels import INSTANCE
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.oci_runtimes import RuntimeServices
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.podman

DEADLINE_S = 20.0


def services_of(program: Path) -> list[psutil.Process]:
    """Podman services with that runtime which run."""
    return [each for each in psutil.Process().children() if str(program) in words_of(each)]


def words_of(process: psutil.Process) -> list[str]:
    """Command line of the process; empty when it has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


async def gone(program: Path) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while services_of(program):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def kill(pid: int) -> None:
    """Until all its threads have ended: before that it is no dead child to anybody."""
    pidfd = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        ended, _, _ = await asyncio.to_thread(select.select, [pidfd], [], [], DEADLINE_S)
        assert ended
    finally:
        os.close(pidfd)


async def test_a_service_is_there_while_containers_are_made(
    podman_service: PodmanService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(podman("info", "--format", "{{.Host.OCIRuntime.Path}}").strip())
    program, instance = tmp_path / own.name, podman_service.new_instance()
    shutil.copy(own, program)
    runtime = PodmanRuntime(podman_service.socket, instance, runtime_services=RuntimeServices(directory=str(tmp_path)))

    async def create() -> str:
        labels = {INSTANCE: instance}
        spec = {"image": podman_service.image, "command": ["true"], "labels": labels, "oci_runtime": str(program)}
        id = await runtime.create_container(spec)
        return podman("inspect", "--format", "{{.OCIRuntime}}", id).strip()

    made = await asyncio.gather(*(create() for _ in range(3)))
    assert made == [str(program)] * 3
    (service,) = services_of(program)
    await kill(service.pid)
    monkeypatch.setattr(oci_runtimes, "IDLE_S", 0.1)
    assert await create() == str(program), "another one takes its place"
    await gone(program)
    assert [name for name in os.listdir(tmp_path) if name.endswith(".sock")] == []
    assert await create() == str(program)
    await runtime.close()
    await gone(program)


async def test_a_runtime_that_is_not_there_is_told(podman_service: PodmanService, tmp_path: Path) -> None:
    instance = podman_service.new_instance()
    for services, why in (
        (RuntimeServices(), "no service of /nowhere/runc can be started"),
        (RuntimeServices(podman=str(tmp_path / "none"), directory=str(tmp_path)), "cannot be started: No such file"),
        (RuntimeServices(podman="false", directory=str(tmp_path)), "of /nowhere/runc ended with 1"),
    ):
        runtime = PodmanRuntime(podman_service.socket, instance, runtime_services=services)
        with pytest.raises(RuntimeCallError) as raised:
            await runtime.create_container({"image": podman_service.image, "oci_runtime": "/nowhere/runc"})
        assert why in raised.value.message
        assert raised.value.kind in (ErrorKind.INTERNAL, ErrorKind.UNAVAILABLE)
        await runtime.close()
