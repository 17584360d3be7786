"""Names of slices and the values of those that pods share; the kubelet's own cases are in `tests.kubelet_tables`."""

from __future__ import annotations

import pytest

from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.podresources.cgroup_config import CgroupConfig
from ipc.k8s.podresources.node_resources import PodCgroups
from ipc.k8s.podresources.pod_cgroups import (
    burstable_milli_cpu,
    parse_slice,
    pod_slice,
    pod_slice_uid,
    pods_directory,
    root_of_instance,
    shared_slices,
    slice_directory,
    uid_in_name,
)
from tests.support.pods import UID, container, pod

OURS = PodCgroups(directory="/sys/fs/cgroup/user@1.service")
UNDERSCORED = UID.replace("-", "_")


def sized(cpu: str, limit: str = "") -> Pod:
    limits = {"cpu": limit, "memory": "1Mi"} if limit else {}
    return pod(container("a", resources=ResourceRequirements(requests={"cpu": cpu, "memory": "1Mi"}, limits=limits)))


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (pod("a"), f"rootlet-besteffort-pod{UNDERSCORED}.slice"),
        (sized("100m"), f"rootlet-burstable-pod{UNDERSCORED}.slice"),
        (sized("100m", "100m"), f"rootlet-pod{UNDERSCORED}.slice"),
    ],
)
def test_a_pod_lies_below_its_class_and_a_guaranteed_one_below_all(of: Pod, name: str) -> None:
    assert pod_slice(OURS, of) == name
    assert pod_slice_uid(name, OURS) == UID


def test_a_slice_lies_where_its_name_says() -> None:
    assert slice_directory(OURS, "rootlet-burstable-pod1_2.slice") == (
        "/sys/fs/cgroup/user@1.service/rootlet.slice/rootlet-burstable.slice/rootlet-burstable-pod1_2.slice"
    )
    assert pods_directory(OURS) == "/sys/fs/cgroup/user@1.service/rootlet.slice"


def test_agents_of_one_user_have_slices_of_their_own() -> None:
    other = PodCgroups(root=root_of_instance("besteffort"))
    assert root_of_instance("rootlet") == "rootlet"
    assert pod_slice(other, pod("a")) == f"rootlet_besteffort-besteffort-pod{UNDERSCORED}.slice"
    assert pod_slice_uid(pod_slice(OURS, pod("a")), other) == ""


@pytest.mark.parametrize("uid", ["a_b", "a/b", "podpod", "ä", "x" * 200, "a b"])
def test_a_uid_that_no_name_can_have_is_replaced(uid: str) -> None:
    name = pod_slice(OURS, pod("a", uid=uid))
    assert len(name) < 128
    assert pod_slice_uid(name, OURS) == uid_in_name(uid) != uid
    assert uid_in_name(uid) != uid_in_name(f"{uid}2")


@pytest.mark.parametrize("name", ["rootlet.slice", "rootlet-burstable.slice", "app.slice", "rootlet-burstable-x.slice"])
def test_other_slices_are_no_pods(name: str) -> None:
    assert pod_slice_uid(name, OURS) == ""
    assert parse_slice(name)[0] in ("rootlet", "app")


def test_all_pods_are_held_to_what_there_is_for_them_and_classes_weigh_what_they_ask_for() -> None:
    pods = [sized("300m"), sized("200m"), sized("1", "1"), pod("a")]
    assert shared_slices(
        OURS, {"cpu": "1500m", "memory": "1Gi", "pid": "900"}, sum(map(burstable_milli_cpu, pods))
    ) == {
        "rootlet.slice": CgroupConfig(memory=1 << 30, cpu_shares=1536, pids_limit=900),
        "rootlet-burstable.slice": CgroupConfig(cpu_shares=512),
        "rootlet-besteffort.slice": CgroupConfig(cpu_shares=2),
    }


def test_nothing_is_enforced_where_that_is_switched_off() -> None:
    loose = PodCgroups(enforced=False)
    assert shared_slices(loose, {"cpu": "1", "memory": "1Gi"}, 0)["rootlet.slice"] == CgroupConfig()
