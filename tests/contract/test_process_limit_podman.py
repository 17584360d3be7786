"""Limits of processes of containers, and of commands in them, on real Podman."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.contract.target import FOREVER, PodmanTarget, container_spec, pod_spec
from tests.support.podman_service import PodmanService
from workers.kubecontainer.runtime import InspectedContainer
from workers.proc.container_tags import container_tag
from workers.proc.process_limit import left_to_commands, left_to_containers, own_limit
from workers.proc.rlimit_tag import locks_limit

pytestmark = pytest.mark.podman

DEADLINE_S: Final = 20.0
_ROW: Final = re.compile(r"^Max processes +(\d+) +(\d+) ", re.MULTILINE)


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service, limits_processes=True)
    yield made
    await made.clean()


def processes(limits: str) -> tuple[int, int]:
    """Soft and hard limit in a file /proc/PID/limits."""
    found = _ROW.search(limits)
    assert found is not None, limits
    return int(found[1]), int(found[2])


def limit_of(pid: int) -> tuple[int, int]:
    return processes(Path(f"/proc/{pid}/limits").read_text())


async def started(target: PodmanTarget, **spec: object) -> InspectedContainer:
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container({**container_spec(target, pod, FOREVER), **spec})
    await target.runtime.start_container(id)
    return await target.runtime.inspect_container(id)


async def test_a_container_leaves_some_and_a_command_in_it_fewer(target: PodmanTarget) -> None:
    container = await started(target)
    most = left_to_containers(own_limit())
    assert limit_of(container.pid) == (most, most)
    told = await target.runtime.exec_container(container.id, ("cat", "/proc/self/limits"), DEADLINE_S)
    assert processes(told.output.decode()) == (left_to_commands(own_limit()),) * 2


async def test_a_containers_tag_stays(target: PodmanTarget) -> None:
    tag = container_tag("u1", "main", 0)
    container = await started(target, r_limits=[tag.rlimit()])
    assert locks_limit(container.pid) == (tag.soft, tag.hard)
    most = left_to_containers(own_limit())
    assert limit_of(container.pid) == (most, most)
