"""An infra container that was just started, as its monitor's files show it and as Podman does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ipc.k8s.network.network_programs import SLIRP4NETNS, program_problem
from tests.contract.target import DEADLINE_S, PodmanTarget, pod_spec
from tests.support.podman_service import PodmanService, podman_version
from workers.kubecontainer.runtime import InspectedContainer
from workers.proc.pidfd import open_pidfd, wait_ended

pytestmark = pytest.mark.podman

UNTOLD = {
    "image": "",
    "image_id": "",
    "image_digest": "",
    "stop_signal": "",
    "user": None,
    "layer": "",
    "hostname_file": "",
}
"""Facts that an infra container's files do not tell, or nobody wants to know of one."""
FILE_CLOCK_S: Final = 0.02
"""Dates of files are those of the kernel's last tick."""


@pytest.fixture
def target(podman_service: PodmanService) -> PodmanTarget:
    return PodmanTarget(podman_service)


async def started(target: PodmanTarget, pid_file: Path, **more: Any) -> tuple[str, dict[str, Any]]:
    """Id and spec of a pod whose infra container runs."""
    spec = pod_spec(target, infra_conmon_pid_file=str(pid_file), **more)
    spec["infra_name"] = f"{spec['name']}_infra"
    id = await target.runtime.create_pod(spec)
    await target.runtime.start_container(spec["infra_name"])
    return id, spec


def look(
    target: PodmanTarget, id: str, spec: dict[str, Any], pid_file: Path, *, host_network: bool = False
) -> InspectedContainer | None:
    return target.runtime.look_at_infra(spec["infra_name"], id, pid_file, spec["labels"], host_network=host_network)


@pytest.mark.parametrize("mode", ["slirp4netns", "host", "bridge"])
async def test_files_tell_what_an_inspect_tells(target: PodmanTarget, tmp_path: Path, mode: str) -> None:
    if mode == SLIRP4NETNS and (problem := program_problem(mode, podman_version())):
        pytest.skip(problem)
    pid_file = tmp_path / "infra.pid"
    try:
        id, spec = await started(target, pid_file, netns={"nsmode": mode})
        seen = look(target, id, spec, pid_file, host_network=mode == "host")
        shown = await target.runtime.inspect_container(spec["infra_name"])
        assert seen is not None
        assert shown.created_at - FILE_CLOCK_S <= seen.created_at <= seen.started_at <= shown.started_at
        ips = shown.ips if mode != "host" else ()
        labels = {key: value for key, value in shown.labels.items() if key in seen.labels}  # the image has some, too
        expected = msgspec.structs.replace(
            shown, created_at=seen.created_at, started_at=seen.started_at, ips=ips, labels=labels, **UNTOLD
        )
        assert msgspec.structs.asdict(seen) == msgspec.structs.asdict(expected)
        assert bool(seen.ips) == (mode != "host")
    finally:
        await target.clean()


async def test_of_what_does_not_run_the_files_tell_nothing(target: PodmanTarget, tmp_path: Path) -> None:
    pid_file = tmp_path / "infra.pid"
    try:
        id, spec = await started(target, pid_file)
        seen = look(target, id, spec, pid_file)
        assert look(target, id, {**spec, "infra_name": "another"}, pid_file) is None
        assert look(target, id, spec, tmp_path / "none.pid") is None
        assert seen is not None
        pidfd = open_pidfd(seen.pid)
        assert pidfd is not None
        await target.kill_process(seen)
        assert await wait_ended(pidfd, DEADLINE_S)
        assert look(target, id, spec, pid_file) is None
    finally:
        await target.clean()


async def test_an_ordinary_file_for_a_pid_file(target: PodmanTarget, tmp_path: Path) -> None:
    """The pid file may be empty, no number, or name a process that is no monitor."""
    spec = {"infra_name": "some_infra", "labels": {}}
    for text in ("", "monitor", "1", "-1", "9" * 30, "\0"):
        pid_file = tmp_path / "infra.pid"
        pid_file.write_text(text)
        assert look(target, "id", spec, pid_file) is None
