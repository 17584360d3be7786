"""Resources of pods outlive the agent; a file that cannot be trusted is put aside."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from ipc.host.atomic_file import write_atomically
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.status import PodCondition
from ipc.k8s.podresources.allocation import PodResourceInfo
from supervisor.managers.allocation import AllocationManager
from supervisor.pods.parts import KnownPods
from supervisor.state import resources_checkpoint
from supervisor.state.checked_file import encode_checked
from supervisor.state.resources_checkpoint import ACTUATED_FILE, ALLOCATED_FILE, PodResources, load, save
from tests.support.flushes import flushes
from tests.support.pods import container, pod

ONE = ResourceRequirements(limits={"cpu": "1"}, requests={"cpu": "500m"})
POD = PodResources(
    allocated=PodResourceInfo(pod_level_resources=ONE, container_resources={"main": ONE}),
    actuated={"c": ONE},
    conditions=(PodCondition(type="PodResizeInProgress", status="True", observed_generation=2),),
)
PLAIN = PodResources(allocated=PodResourceInfo(container_resources={"main": ResourceRequirements()}))


def test_what_was_saved_is_restored(tmp_path: Path) -> None:
    save(tmp_path, {"a": POD, "b": PLAIN}, {})
    assert load(tmp_path) == {"a": POD, "b": PLAIN}
    assert [os.stat(tmp_path / file).st_mode & 0o777 for file in (ALLOCATED_FILE, ACTUATED_FILE)] == [0o600] * 2
    save(tmp_path, {}, {})
    assert load(tmp_path) == {}


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert load(tmp_path) == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"version":1,"checksum":"","payload":{}}',
        encode_checked(2, b"{}"),
        encode_checked(1, b"[]"),
        encode_checked(1, b'{"a":{"allocated":{"container_resources":{"main":{"limits":{"cpu":"many"}}}}}}'),
    ],
    ids=["empty", "cut", "damaged", "another version", "another shape", "no quantity"],
)
def test_what_cannot_be_trusted_is_put_aside(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / ALLOCATED_FILE).write_bytes(content)
    assert load(tmp_path) == {}
    assert (tmp_path / f"{ALLOCATED_FILE}.refused").read_bytes() == content
    assert "cannot be used" in caplog.text


def test_a_kill_between_the_two_files_loses_what_was_given_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers that run are looked at when the agent has begun; what a pod was allocated nothing else knows."""
    save(tmp_path, {"a": PLAIN}, {})
    written = write_atomically

    def dies(path: Path, data: bytes) -> None:
        if path.name == ACTUATED_FILE:
            raise OSError("killed")
        written(path, data)

    monkeypatch.setattr(resources_checkpoint, "write_atomically", dies)
    with pytest.raises(OSError, match="killed"):
        save(tmp_path, {"a": POD}, {})
    assert load(tmp_path) == {"a": PodResources(allocated=POD.allocated, conditions=POD.conditions)}


def test_what_is_on_disk_is_not_written_again(tmp_path: Path) -> None:
    written: dict[str, bytes] = {}
    save(tmp_path, {"a": POD}, written)
    before = {file: (tmp_path / file).stat().st_ino for file in (ALLOCATED_FILE, ACTUATED_FILE)}
    save(tmp_path, {"a": POD, "b": PLAIN}, written)
    after = {file: (tmp_path / file).stat().st_ino for file in before}
    assert (after[ALLOCATED_FILE] == before[ALLOCATED_FILE], after[ACTUATED_FILE] == before[ACTUATED_FILE]) == (
        False,
        True,
    )
    assert load(tmp_path) == {"a": POD, "b": PLAIN}


def test_a_pod_that_comes_or_goes_costs_one_flush_and_everything_else_its_directory_too(tmp_path: Path) -> None:
    """A whole file is there after a power cut either way."""
    with flushes() as flushed:
        written: dict[str, bytes] = {}
        save(tmp_path, {}, written)
        flushed.clear()
        save(tmp_path, {"a": PLAIN}, written, durable=False)
        assert flushed == ["file"]
        save(tmp_path, {"a": msgspec.structs.replace(PLAIN, conditions=POD.conditions)}, written)
        assert flushed == ["file", "file", "directory"]
        save(tmp_path, {"a": msgspec.structs.replace(PLAIN, conditions=POD.conditions)}, written)
        assert flushed == ["file", "file", "directory"]


def test_who_comes_and_goes_does_not_hurry_and_who_is_given_something_does() -> None:
    of = pod("main", uid="a")
    known = KnownPods()
    allocations = AllocationManager(known)
    allocations.allocate(of)
    assert (allocations.version, allocations.urgent_version) == (1, 0)
    allocations.allocate(pod(container("main", resources=ONE), uid="a"))
    assert allocations.urgent_version == allocations.version == 2
    allocations.set_condition("a", "PodResizeInProgress", "", "", 2, "2026-01-01T00:00:00Z")
    assert allocations.urgent_version == allocations.version == 3
    allocations.set_devices("a", {"main": {"example.com/gpu": ("g0",)}})
    allocations.actuate("a", {"c": ONE})
    assert allocations.urgent_version == allocations.version == 5
    known.forget("a")
    assert (allocations.version, allocations.urgent_version) == (6, 5)
