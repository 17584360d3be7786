"""The file system that a pod's directories are on."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.measured_pod import OTHER_DEVICE, measured_files, measured_pod
from workers.stats.files import EMPTY_DIR


def test_volumes_have_the_figures_of_their_own_file_system(tmp_path: Path) -> None:
    volumes, layer = tmp_path / "pods" / "u" / "volumes" / EMPTY_DIR, tmp_path / "overlay" / "id" / "diff"
    (volumes / "here").mkdir(parents=True)
    (volumes / "elsewhere").symlink_to(OTHER_DEVICE)
    layer.mkdir(parents=True)
    files = measured_files(tmp_path)
    pod = measured_pod(layer)
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
