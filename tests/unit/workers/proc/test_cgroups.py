"""Where the cgroups of containers and pods are, and what is written to a pod's."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipc.k8s.podresources.cgroup_config import CgroupConfig
from workers.proc import cgroups

ID = "c" * 64
POD = f"user@1000.service/user.slice/user-libpod_pod_{ID}.slice"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"0::/user.slice/x/libpod-{ID}.scope/container\n", f"/sys/fs/cgroup/user.slice/x/libpod-{ID}.scope"),
        (f"1:cpu:/\n0::/libpod_parent/libpod-{ID}\n", f"/sys/fs/cgroup/libpod_parent/libpod-{ID}"),
        ("0::/user.slice/session-1.scope\n", ""),
        (f"0::/../libpod-{ID}\n", ""),
        (f"4:memory:/libpod-{ID}\n", ""),
        ("", ""),
    ],
)
def test_the_containers_own_cgroup(text: str, expected: str) -> None:
    assert cgroups.cgroup_directory(text, ID) == expected


def test_a_container_without_an_id_has_none() -> None:
    assert cgroups.cgroup_directory("0::/x\n", "") == ""


def test_the_cgroup_of_a_pod_is_above_that_of_its_infra_container() -> None:
    text = f"0::/{POD}/libpod-{'i' * 64}.scope/container\n"
    assert cgroups.cgroup_directory(text, f"libpod_pod_{ID}") == f"/sys/fs/cgroup/{POD}"


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    directory = str(tmp_path)
    assert cgroups.read_config(directory) == CgroupConfig()
    config = CgroupConfig(memory=1 << 20, cpu_quota=5_000, cpu_period=100_000)
    cgroups.write_config(directory, config)
    assert (tmp_path / "cpu.max").read_text() == "5000 100000"
    assert cgroups.read_config(directory) == config
    cgroups.write_config(directory, CgroupConfig(cpu_shares=1024))
    assert (tmp_path / "cpu.weight").read_text() == "39"
    assert (tmp_path / "memory.max").read_text() == str(1 << 20), "what is not given stays"


def test_no_limit_is_none(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert cgroups.read_config(str(tmp_path)) == CgroupConfig(cpu_period=100_000)


def test_usage_is_unknown_without_a_controller(tmp_path: Path) -> None:
    assert cgroups.memory_usage(str(tmp_path)) is None
    assert cgroups.memory_usage("") is None
    (tmp_path / "memory.current").write_text("4096\n")
    assert cgroups.memory_usage(str(tmp_path)) == 4096
