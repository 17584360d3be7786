"""The checkpoint: comes back as it was, is whole or not there, and is not trusted when it is damaged."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.host import atomic_file
from ipc.host.state_file import StateUnusable
from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.v1.base import Empty
from ipc.k8s.api.v1.status import PodPhase, PodStatus
from supervisor.protocol.manifests import DesiredPod, ManifestPod, SourceSnapshot
from supervisor.sources import checkpoint
from supervisor.sources.checkpoint import load, save
from supervisor.sources.objects.merge import PodConfig
from supervisor.state.checked_file import encode_checked
from tests.support.manifests import NOW, pod


def desired(*names: str) -> tuple[DesiredPod, ...]:
    """A set as the merge makes it."""
    config = PodConfig(["file"])
    pods = tuple(
        ManifestPod(pod=pod(name, metadata={"labels": {"a": "b"}}), file="ü.yaml", document=number)
        for number, name in enumerate(names, 1)
    )
    config.merge(SourceSnapshot(source="file", pods=pods, complete=True), NOW)
    return config.desired()


SET = desired("a", "b")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "desired.json"


def encoded(tmp_path: Path) -> bytes:
    save(tmp_path / "made.json", SET)
    return (tmp_path / "made.json").read_bytes()


def test_what_is_saved_is_loaded(path: Path) -> None:
    save(path, SET)
    assert load(path) == SET
    save(path, ())
    assert load(path) == ()


def test_no_checkpoint_is_no_error(path: Path) -> None:
    assert load(path) is None


def test_it_is_private(path: Path) -> None:
    save(path, SET)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [found.name for found in path.parent.iterdir()] == ["desired.json"]


def test_a_permissive_leftover_does_not_make_it_public(path: Path) -> None:
    path.parent.mkdir()
    leftover = path.with_name(".desired.json.tmp")
    leftover.write_bytes(b"x" * 100_000)
    leftover.chmod(0o666)
    save(path, SET)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load(path) == SET


def test_a_link_in_place_of_the_temporary_file_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.parent.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.with_name(".desired.json.tmp").symlink_to(victim)
    save(path, SET)
    assert victim.read_text() == "precious"
    assert load(path) == SET


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failed_save_leaves_the_previous_one_whole(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, SET)

    def fail(*_: object) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        target: Any = {"write": (atomic_file, "_write"), "fsync": (os, "fsync"), "replace": (os, "replace")}[call]
        owner, name = target
        patch.setattr(owner, name, fail)
        with pytest.raises(OSError, match="No space"):
            save(path, desired("c"))
    assert load(path) == SET
    assert [found.name for found in path.parent.iterdir()] == ["desired.json"]


def changed(**fields: Any) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **fields}).encode()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(lambda data: b"", "Input data was truncated", id="empty"),
        pytest.param(lambda data: data[: len(data) // 2], "truncated", id="half"),
        pytest.param(lambda data: os.urandom(4096), "", id="random bytes"),
        pytest.param(lambda data: data.replace(b"busybox", b"evilbox"), "its checksum is wrong", id="edited"),
        pytest.param(changed(version=2), "it is of version 2, not 1", id="another version"),
        pytest.param(changed(checksum=""), "its checksum is wrong", id="no checksum"),
        pytest.param(changed(more=1), "unknown field", id="unknown field"),
        pytest.param(lambda data: b"[1]", "Expected `object`", id="another shape"),
    ],
)
def test_a_damaged_one_is_moved_aside_and_never_trusted(
    path: Path, tmp_path: Path, damage: Callable[[bytes], bytes], why: str
) -> None:
    path.parent.mkdir()
    path.write_bytes(damage(encoded(tmp_path)))
    with pytest.raises(StateUnusable, match=f"desired.json cannot be used: .*{why}.*; moved to desired.json.refused"):
        load(path)
    assert load(path) is None
    save(path, SET)
    assert load(path) == SET
    assert path.with_name("desired.json.refused").exists()


def test_a_pod_that_no_longer_decodes_is_not_trusted(path: Path) -> None:
    payload = b'[{"source":"file","file":"a.yaml","document":1,"pod":{"apiVersion":"v1","kind":"Pod","speck":{}}}]'
    path.parent.mkdir()
    path.write_bytes(encode_checked(checkpoint.VERSION, payload))
    with pytest.raises(StateUnusable, match="speck: unknown field"):
        load(path)


def test_what_is_no_file_is_not_waited_for(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StateUnusable, match="it is not a regular file"):
        load(path)
    path.symlink_to("/dev/zero")
    with pytest.raises(StateUnusable, match="Too many levels"):
        load(path)


def test_a_huge_one_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(path, SET)
    monkeypatch.setattr(checkpoint, "MAX_CHECKPOINT_BYTES", 10)
    with pytest.raises(StateUnusable, match="larger than 10 bytes"):
        load(path)


def test_one_that_cannot_be_moved_aside_is_said(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"x")
    path.parent.chmod(0o500)
    with pytest.raises(StateUnusable, match="could not be moved aside"):
        load(path)
    path.parent.chmod(0o700)


@given(st.binary(max_size=300))
def test_no_bytes_are_taken_for_a_checkpoint(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("state") / "desired.json"
    path.write_bytes(data)
    with pytest.raises(StateUnusable):
        load(path)


@pytest.mark.parametrize(("phase", "kept"), [("Failed", "Failed"), ("Succeeded", "Succeeded"), ("Running", "")])
def test_of_a_pod_s_status_in_the_cluster_only_its_end_is_kept(
    path: Path, phase: PodPhase, kept: PodPhase | Empty
) -> None:
    ended = msgspec.structs.replace(pod("a"), status=PodStatus(phase=phase))
    save(path, [DesiredPod(source=API_SOURCE, pod=ended)])
    (loaded,) = load(path) or ()
    assert loaded.pod.status == PodStatus(phase=kept)
