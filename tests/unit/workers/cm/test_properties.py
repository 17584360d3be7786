"""Properties of slices, as busctl(1) takes them."""

from __future__ import annotations

import pytest

from ipc.k8s.podresources.cgroup_config import CgroupConfig
from workers.cm.user_slices import NO_MAXIMUM, slice_properties


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (CgroupConfig(), "0"),
        (CgroupConfig(cpu_shares=2), "1 CPUWeight t 1"),
        (
            CgroupConfig(cpu_shares=1024, memory=1 << 20, pids_limit=7),
            "3 CPUWeight t 39 MemoryMax t 1048576 TasksMax t 7",
        ),
        (
            CgroupConfig(cpu_quota=50_000, cpu_period=100_000),
            "2 CPUQuotaPeriodUSec t 100000 CPUQuotaPerSecUSec t 500000",
        ),
        (
            CgroupConfig(cpu_quota=-1, cpu_period=5_000),
            f"2 CPUQuotaPeriodUSec t 5000 CPUQuotaPerSecUSec t {NO_MAXIMUM}",
        ),
    ],
)
def test_only_what_the_config_says_is_set(config: CgroupConfig, words: str) -> None:
    assert " ".join(slice_properties(config)) == words
