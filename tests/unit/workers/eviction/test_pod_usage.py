"""Disk that pods have, counted when one of them is to be chosen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.k8s.eviction.usage import DiskUsage
from workers.eviction import pod_usage
from workers.eviction.pod_usage import usage_of_disk
from workers.fs.disk_usage import bytes_and_inodes_at_least, used_bytes_and_inodes
from workers.logs import layout
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.userns.entry import STEPS
from workers.userns.unshare import Unshare

KIB = 1024


def target(name: str, layer: str = "") -> PodTarget:
    main = ContainerTarget(
        id=name, name="main", attempt=0, image="i", pid=1, start_ticks=1, started_at=0.0, layer=layer
    )
    return PodTarget(
        uid=name, name=name, namespace="default", started_at=0.0, host_network=False, infra=None, containers=(main,)
    )


def test_layers_logs_and_volumes(tmp_path: Path) -> None:
    directories = PodDirectories(pods=str(tmp_path / "pods"), logs=str(tmp_path / "logs"))
    volume = tmp_path / "pods" / "a" / "volumes" / "kubernetes.io~empty-dir" / "v"
    logs = layout.pod_directory(directories.logs, "default", "a", "a") / "main"
    layer = tmp_path / "layer"
    for number, place in enumerate((volume, logs, layer), start=1):
        place.mkdir(parents=True)
        (place / "file").write_bytes(b"x" * number * 64 * KIB)
    (tmp_path / "pods" / "a" / "etc-hosts").write_bytes(b"x" * 256 * KIB)
    [a, b] = usage_of_disk([target("a", str(layer)), target("b")], directories, Unshare())
    assert a.files is not None
    assert (a.files.used, a.files.inodes) == (256 * KIB, 1)
    assert b.files is None, "it has no directory"
    [main] = a.containers
    used = {"volume": a.volumes["v"], "logs": main.logs, "layer": main.rootfs}
    for number, (name, disk) in enumerate(used.items(), start=1):
        assert disk is not None, name
        assert disk.used is not None
        assert 0 <= disk.used - number * 64 * KIB < 32 * KIB, name
        assert disk.inodes == 2, name
    assert b.containers[0].rootfs is None, "its driver has no layers"
    assert b.containers[0].logs == DiskUsage(0, 0)


def test_more_files_than_are_counted_are_at_least_so_many(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).touch()
    assert used_bytes_and_inodes(str(tmp_path), 20) is None
    _, inodes = bytes_and_inodes_at_least(str(tmp_path), 20)
    assert 20 <= inodes <= 21
    assert bytes_and_inodes_at_least(str(tmp_path), 1000) == used_bytes_and_inodes(str(tmp_path))


def test_the_step_inside_podmans_namespaces_is_the_same_function() -> None:
    assert STEPS["bytes_and_inodes_at_least"] is bytes_and_inodes_at_least


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_directory_that_is_closed_is_counted_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: str, max_files: int) -> tuple[int, int]:
        raise PermissionError(path)

    monkeypatch.setattr(pod_usage, "bytes_and_inodes_at_least", closed)
    monkeypatch.setattr(Unshare, "run", lambda self, steps: [[7 * KIB, 3] for _ in steps])
    directories = PodDirectories(pods=str(tmp_path), logs=str(tmp_path))
    [a] = usage_of_disk([target("a", str(tmp_path))], directories, Unshare())
    assert a.containers[0].rootfs == DiskUsage(7 * KIB, 3)
