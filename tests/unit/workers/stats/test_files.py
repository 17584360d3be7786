"""The file system that a pod's directories are on."""

from __future__ import annotations

import os
from pathlib import Path

from ipc.host.clock import SystemClock
from workers.stats.files import EMPTY_DIR, Files
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.userns.unshare import Unshare

OTHER_DEVICE = "/dev/shm"


def target(layer: Path) -> PodTarget:
    main = ContainerTarget(
        id="main", name="main", attempt=0, image="", pid=1, start_ticks=0, started_at=1.0, layer=str(layer)
    )
    return PodTarget(
        uid="u", name="web", namespace="default", started_at=1.0, host_network=False, infra=None, containers=(main,)
    )


def test_volumes_have_the_figures_of_their_own_file_system(tmp_path: Path) -> None:
    volumes, layer = tmp_path / "pods" / "u" / "volumes" / EMPTY_DIR, tmp_path / "overlay" / "id" / "diff"
    (volumes / "here").mkdir(parents=True)
    (volumes / "elsewhere").symlink_to(OTHER_DEVICE)
    layer.mkdir(parents=True)
    files = Files(
        PodDirectories(pods=str(tmp_path / "pods"), logs=str(tmp_path)),
        SystemClock(),
        Unshare(podman="/nonexistent"),
    )
    pod = target(layer)
    files.begin_round([pod])
    found = {volume.name: volume.fs for volume in files.volumes(pod)}
    assert os.stat(OTHER_DEVICE).st_dev != os.stat(tmp_path).st_dev
    here, elsewhere = os.statvfs(tmp_path), os.statvfs(OTHER_DEVICE)
    assert found["here"].capacity == here.f_blocks * here.f_frsize
    assert found["elsewhere"].capacity == elsewhere.f_blocks * elsewhere.f_frsize
    assert found["here"].path == str(volumes / "here")
    rootfs = files.rootfs(pod.containers[0])
    assert rootfs is not None
    assert (rootfs.path, rootfs.capacity) == (str(layer), found["here"].capacity)
