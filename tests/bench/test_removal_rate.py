"""Pods removed per second: Rootlet beside bare `pod rm -f -t 0` with 1, 2, 4 and 8 at a time, in turns on one service.

Rootlet's is a deletion with a grace period of one second, of containers that end on SIGTERM: from the request until
the watch has told that the last pod is gone.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.host.clock import monotonic
from tests.bench.raw_pods import in_flight, make_pods, pods_of, remove_pod, start_pod
from tests.bench.test_start_rate import agent_that_deletes
from tests.podman_service import PodmanService

pytestmark = [pytest.mark.bench, pytest.mark.podman, pytest.mark.timeout(3600)]

PODS = int(os.environ.get("ROOTLET_BENCH_PODS", "60"))
ROUNDS = int(os.environ.get("ROOTLET_BENCH_ROUNDS", "3"))
AT_A_TIME = (1, 2, 4, 8)


def test_removal_rate(podman_service: PodmanService, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds: dict[str, list[float]] = {}
    with agent_that_deletes(podman_service, tmp_path) as delete_with_rootlet:
        ways: dict[str, Callable[[str], float]] = {"rootlet": delete_with_rootlet}
        ways |= {f"raw {n}": _raw(podman_service, tmp_path, n) for n in AT_A_TIME}
        for round_ in range(ROUNDS):
            for way, remove in ways.items():
                seconds.setdefault(way, []).append(remove(f"r{round_}{way.replace(' ', '')}"))
    with capsys.disabled():
        _print(seconds)
