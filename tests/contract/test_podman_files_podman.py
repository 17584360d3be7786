"""Private files of Podman and conmon that no other test of the contract reads lie where they did, and say the same.

A release of Podman that changes one of them fails here. docs/compatibility.md has the table.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.host.pause_process import pause_pid, runtime_dir
from supervisor.processes.pause_process import ALIVE
from tests.contract.target import PodmanTarget, container_spec, pod_spec, running
from tests.support.podman_service import PodmanService, podman, podman_settings, podman_version
from workers.podman_files.default_store import DefaultStore, left_over
from workers.podman_files.orphaned_monitors import find_monitors

pytestmark = pytest.mark.podman


@pytest.fixture
def target(podman_service: PodmanService) -> PodmanTarget:
    return PodmanTarget(podman_service)


async def test_the_storages_records_name_a_container_its_image_and_its_directories(target: PodmanTarget) -> None:
    store = DefaultStore(podman_settings().command)
    try:
        container = await running(target)
        users = {user.id: user for user in store.users()}
        assert users[container.id].images == (container.image_id,)
        assert users[container.id].name == container.name
        place = store.place
        directory = Path(place.graph_root, f"{place.graph_driver_name}-containers", container.id)
        layer = Path(container.layer).parent
        assert os.path.isdir(directory)  # noqa: ASYNC240
        assert layer.parent == Path(place.graph_root, place.graph_driver_name)
        assert not {directory, layer} & set(left_over(place))
    finally:
        await target.clean()


async def test_a_monitor_tells_its_container_and_its_oci_runtime(target: PodmanTarget, tmp_path: Path) -> None:
    try:
        pod = await target.runtime.create_pod(pod_spec(target, infra_conmon_pid_file=str(tmp_path / "infra.pid")))
        log = {"driver": "k8s-file", "path": str(tmp_path / "0.log")}
        id = await target.runtime.create_container(container_spec(target, pod, log_configuration=log))
        await target.runtime.start_container(id)
        infra, found = (await target.runtime.inspect_pod(pod)).infra_id, find_monitors(str(tmp_path))
        assert {monitor.container_id for monitor in found} == {infra, id}
        assert all(os.access(monitor.oci_runtime, os.X_OK) for monitor in found)
    finally:
        await target.clean()


def test_the_pause_process_is_the_one_whose_namespaces_podmans_commands_join() -> None:
    inside = podman("unshare", "readlink", "/proc/self/ns/user").strip()
    assert os.readlink(f"/proc/{pause_pid(runtime_dir(os.environ, os.getuid()))}/ns/user") == inside


def test_podman_marks_the_boot() -> None:
    if int(podman_version().split(".")[0]) >= 5:
        pytest.skip("the mark is removed on Podman 4 alone")
    podman("ps")
    assert (runtime_dir(os.environ, os.getuid()) / ALIVE).is_file()
