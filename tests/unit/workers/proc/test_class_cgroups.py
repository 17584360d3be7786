"""Values of the cgroups of QoS classes, written to directories that stand for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipc.api.v1.container import ResourceRequirements
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.qos_slices import pod_parent
from tests.harness.pods import container, pod
from workers.proc.class_cgroups import ClassCgroups

NODE = NodeResources(
    capacity={"cpu": "2", "memory": "2Gi"},
    cgroups_per_qos=True,
    enforced={"cpu": "1500m", "memory": "1Gi", "ephemeral-storage": "1Gi", "pid": "1000"},
)
FILES = ("cpu.weight", "memory.max", "pids.max")


def make(directory: Path) -> Path:
    """A cgroup as the kernel makes it."""
    directory.mkdir(parents=True)
    for file in FILES:
        (directory / file).write_text("max")
    return directory


def values(directory: Path) -> list[str]:
    return [(directory / file).read_text() for file in FILES]


def test_classes_weigh_what_their_pods_ask_for_and_all_pods_have_what_is_theirs(tmp_path: Path) -> None:
    cgroups = ClassCgroups(tmp_path, "a-b", NODE)
    cgroups.weigh(1024)
    cgroups.write()
    assert list(tmp_path.iterdir()) == [], "there is no pod yet"
    pods = make(tmp_path / "rootlet.slice" / "rootlet-a_b.slice")
    burstable = make(pods / "rootlet-a_b-burstable.slice")
    best_effort = make(pods / "rootlet-a_b-besteffort.slice")
    cgroups.write()
    assert values(pods) == ["59", str(1 << 30), "1000"]
    assert values(burstable) == ["39", "max", "max"]
    assert values(best_effort) == ["1", "max", "max"]
    cgroups.weigh(2048)
    cgroups.write()
    assert values(burstable)[0] == "79"


def test_a_cgroup_that_was_made_anew_is_written_anew(tmp_path: Path) -> None:
    cgroups = ClassCgroups(tmp_path, "a", NODE)
    pods = make(tmp_path / "rootlet.slice" / "rootlet-a.slice")
    cgroups.write()
    (pods / "cpu.weight").write_text("100")
    cgroups.write()
    assert values(pods)[0] == "100", "not while nothing has changed"
    os.rename(pods, tmp_path / "old")
    make(pods)
    cgroups.write()
    assert values(pods)[0] == "59"


def test_a_limit_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cgroups = ClassCgroups(tmp_path, "a", NODE)
    pods = make(tmp_path / "rootlet.slice" / "rootlet-a.slice")
    (pods / "memory.max").unlink()
    (pods / "memory.max").mkdir()
    (pods / "pids.max").unlink()
    cgroups.write()
    cgroups.weigh(2)
    cgroups.write()
    assert [record.message for record in caplog.records] == [f"cgroup {pods}: memory.max: Is a directory"]
    assert (pods / "cpu.weight").read_text() == "59"


def test_without_delegated_controllers_nothing_is_written(tmp_path: Path) -> None:
    pods = make(tmp_path / "rootlet.slice" / "rootlet-a.slice")
    ClassCgroups(tmp_path, "a", NodeResources()).write()
    assert values(pods) == ["max"] * 3


@pytest.mark.parametrize(
    ("limits", "requests", "parent"),
    [
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "rootlet-a_b.slice"),
        ({}, {"cpu": "1"}, "rootlet-a_b-burstable.slice"),
        ({}, {}, "rootlet-a_b-besteffort.slice"),
    ],
)
def test_a_pods_cgroup_is_made_below_that_of_its_class(
    limits: dict[str, str], requests: dict[str, str], parent: str
) -> None:
    asked = ResourceRequirements(limits=limits, requests=requests)
    assert pod_parent("a-b", pod(container("main", resources=asked))) == parent
