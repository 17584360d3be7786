"""Statistics of claims: of Podman volumes and of the user's own file systems, which need not answer."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.measured_pod import OTHER_DEVICE, measured_files, measured_pod
from workers.kubecontainer.mounted_claims import ClaimKind, MountedClaim, write_mounted_claims
from workers.stats import storage
from workers.stats.storage import UserFileSystems, file_system
from workers.statsapi.values import FileSystem


def test_claims_are_measured_as_upstream_measures_their_kind(tmp_path: Path) -> None:
    """A local volume is its file system, a Podman volume what is in it, and neither is ephemeral storage."""
    data, layer = tmp_path / "volumes" / "data" / "_data", tmp_path / "overlay" / "id" / "diff"
    for directory in (tmp_path / "pods" / "u", data, layer):
        directory.mkdir(parents=True)
    (data / "file").write_bytes(bytes(5 << 20))
    claims = (
        MountedClaim(volume="disk", claim="of-disk", kind=ClaimKind.LOCAL, path=OTHER_DEVICE),
        MountedClaim(volume="named", claim="data", kind=ClaimKind.PODMAN, path=str(data)),
        MountedClaim(volume="lost", claim="lost", kind=ClaimKind.PODMAN, path=str(tmp_path / "nothing")),
    )
    write_mounted_claims(str(tmp_path / "pods"), "u", claims)
    files = measured_files(tmp_path)
    pod = measured_pod(layer)
    files.begin_round([pod])
    samples = tuple(files.volumes(pod))
    assert [(each.name, each.claim) for each in samples] == [("disk", "of-disk"), ("named", "data")]
    disk, named = (each.fs for each in samples)
    elsewhere = os.statvfs(OTHER_DEVICE)
    assert disk.capacity == elsewhere.f_blocks * elsewhere.f_frsize
    assert disk.inodes_used == elsewhere.f_files - elsewhere.f_ffree
    assert named.used is not None
    assert 5 << 20 <= named.used < 6 << 20
    assert named.inodes_used == 2
    ephemeral = files.ephemeral(pod, (), samples)
    assert ephemeral is not None
    assert ephemeral.used == 0


def test_a_file_system_that_does_not_answer_is_asked_once_and_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "ANSWER_S", 0.01)
    asked, answers = [], threading.Event()

    def hanging(path: str, time: float) -> FileSystem | None:
        asked.append(path)
        assert path == str(tmp_path) or answers.wait(10)
        return file_system(path, time)

    users = UserFileSystems(hanging)
    assert users.of("/gone", 1.0) is None
    assert users.of("/gone", 2.0) is None
    monkeypatch.setattr(storage, "ANSWER_S", 10.0)
    here = users.of(str(tmp_path), 1.0)
    assert here is not None
    assert asked == ["/gone", str(tmp_path)]
    monkeypatch.setattr(storage, "MAX_HANGING", 1)
    assert users.of(str(tmp_path), 3.0) is None, "as many hang as may"
    answers.set()
