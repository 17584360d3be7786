"""A container that was just started, as its monitor's files show it and as Podman does."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.contract.target import DEADLINE_S, PodmanTarget, container_spec, pod_spec, unique
from tests.support.podman_service import IMAGE, PodmanService, podman
from tests.support.variants import seldom
from workers.kubecontainer.runtime import ContainerProcess, InspectedContainer
from workers.podman_files.bundle import read_config
from workers.podman_files.monitor import monitor_option, monitor_words
from workers.proc.pidfd import open_pidfd, wait_ended

pytestmark = pytest.mark.podman

FILE_CLOCK_S: Final = 0.02
"""The clock of files is so much behind at the most, in seconds."""
LET_GO_S: Final = 0.5
"""Podman notes a start so long after it at the most, in seconds."""
STARTS: Final = 20
"""Starts until one has ended in the second in which it began, on a host however busy."""
RECIPE: Final = f"""FROM {IMAGE}
LABEL a=image b=image
STOPSIGNAL SIGINT
USER 7:8
"""


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


@pytest.fixture
def image(podman_service: PodmanService, tmp_path: Path) -> Iterator[str]:
    """An image with labels, a stop signal and a user; gone in the end."""
    name = f"localhost/{unique('look', PodmanTarget(podman_service))}:latest"
    (tmp_path / "Dockerfile").write_text(RECIPE)
    podman("build", "--quiet", "--tag", name, str(tmp_path))
    yield name
    podman("rmi", "--force", "--ignore", name)


async def sandbox(target: PodmanTarget, pid_file: Path) -> str:
    """Id of a pod whose infra container runs and was looked at."""
    spec = pod_spec(target, infra_conmon_pid_file=str(pid_file))
    spec["infra_name"] = f"{spec['name']}_infra"
    id = await target.runtime.create_pod(spec)
    await target.runtime.start_container(spec["infra_name"])
    assert target.runtime.look_at_infra(spec["infra_name"], id, pid_file, spec["labels"], host_network=False)
    return id


async def looked(target: PodmanTarget, spec: dict[str, Any]) -> InspectedContainer | None:
    """A container, made and started, as the files tell."""
    image = await target.runtime.inspect_image(spec["image"])
    assert image is not None
    id = await target.runtime.create_container(spec)
    await target.runtime.start_container(id)
    return target.runtime.look_at_container(id, spec, image)


@pytest.mark.parametrize(
    "more", [seldom({}, id="the image's"), pytest.param({"stop_signal": 10, "user": "9"}, id="its own")]
)
async def test_files_tell_what_an_inspect_tells(
    target: PodmanTarget, tmp_path: Path, image: str, more: dict[str, Any]
) -> None:
    pod = await sandbox(target, tmp_path / "infra.pid")
    log = {"driver": "k8s-file", "path": str(tmp_path / "log")}
    for _ in range(STARTS):
        spec = container_spec(target, pod, image=image, log_configuration=log, **more)
        spec["labels"]["b"] = "own"
        seen = await looked(target, spec)
        if seen is not None:
            break
    assert seen is not None, f"none of {STARTS} starts was within a second"
    shown = await target.runtime.inspect_container(seen.id)
    assert seen.started_at <= shown.started_at, "the pid file is older than the start"
    assert int(seen.started_at) == int(shown.started_at)
    assert (seen.labels["a"], seen.labels["b"], seen.image) == ("image", "own", image)
    # Podman 5 writes no date of the creation: that of the container's directory is some milliseconds later.
    if read_config(seen.config_path).annotations.created:
        assert seen.created_at == shown.created_at
    assert shown.created_at - FILE_CLOCK_S <= seen.created_at <= seen.started_at
    untold = {"resolv_conf": "", "hostname_file": ""}
    expected = msgspec.structs.replace(shown, created_at=seen.created_at, started_at=seen.started_at, **untold)
    assert msgspec.structs.asdict(seen) == msgspec.structs.asdict(expected)


async def test_of_what_does_not_run_the_files_tell_nothing(target: PodmanTarget, tmp_path: Path) -> None:
    pod = await sandbox(target, tmp_path / "infra.pid")
    spec = container_spec(target, pod)
    info = await target.runtime.inspect_image(spec["image"])
    assert info is not None
    id = await target.runtime.create_container(spec)
    assert target.runtime.look_at_container(id, spec, info) is None, "it was not started"
    await target.runtime.start_container(id)
    assert target.runtime.look_at_container(id, {**spec, "name": "another"}, info) is None
    assert target.runtime.look_at_container("0" * 64, spec, info) is None
    assert target.runtime.look_at_container(id, {**spec, "oci_runtime": "/bin/another"}, info) is None
    shown = await target.runtime.inspect_container(id)
    pidfd = open_pidfd(shown.pid)
    assert pidfd is not None
    await target.kill_process(shown)
    assert await wait_ended(pidfd, DEADLINE_S)
    assert target.runtime.look_at_container(id, spec, info) is None


async def test_a_start_in_an_earlier_second_is_not_told(
    target: PodmanTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = await sandbox(target, tmp_path / "infra.pid")
    for _ in range(STARTS):
        spec = container_spec(target, pod)
        seen = await looked(target, spec)
        if seen is not None:
            break
    assert seen is not None
    info = await target.runtime.inspect_image(spec["image"])
    assert info is not None
    at = seen.started_at
    for now, is_told in ((at, True), (float(int(at)) + 0.99, True), (float(int(at)) + 1.0, False)):
        monkeypatch.setattr("workers.podman_files.started_look.wall", lambda now=now: now)
        assert (target.runtime.look_at_container(seen.id, spec, info) is not None) == is_told


async def test_the_start_is_the_moment_in_which_the_process_is_let_go(target: PodmanTarget, tmp_path: Path) -> None:
    pod = await sandbox(target, tmp_path / "infra.pid")
    for _ in range(STARTS):
        spec = container_spec(target, pod)
        info = await target.runtime.inspect_image(spec["image"])
        assert info is not None
        id = await target.runtime.create_container(spec)
        await target.runtime.start_container(id)
        shown = await target.runtime.inspect_container(id)
        pid_file = Path(monitor_option(monitor_words(shown.conmon_pid), "-p"))
        os.utime(pid_file, (shown.started_at - 1.0,) * 2)  # as of a host on which Podman waits long between two calls
        seen = target.runtime.look_at_container(id, spec, info)
        if seen is not None:
            break
    assert seen is not None
    assert shown.started_at - LET_GO_S <= seen.started_at <= shown.started_at


async def test_before_the_first_monitor_nobody_knows_where_the_files_are(target: PodmanTarget, tmp_path: Path) -> None:
    await sandbox(target, tmp_path / "infra.pid")
    (listed,) = await target.runtime.list_pods()
    spec = container_spec(target, listed.id)
    other = target.stranger()
    info = await other.inspect_image(spec["image"])
    assert info is not None
    id = await target.runtime.create_container(spec)
    await target.runtime.start_container(id)
    assert other.look_at_container(id, spec, info) is None
    assert other.image_stamp() is None
    other.learn_from(ContainerProcess(container_id=id, monitor_pid=os.getpid()))
    assert other.look_at_container(id, spec, info) is None, "that is no monitor"
    infra = await other.inspect_container(listed.infra_id)
    other.learn_from(infra.process)
    assert other.image_stamp(info.id) is not None
    for _ in range(STARTS):
        if (seen := other.look_at_container(id, spec, info)) is not None:
            break
        spec = container_spec(target, listed.id)
        id = await target.runtime.create_container(spec)
        await target.runtime.start_container(id)
    assert seen is not None
    assert seen.id == id
