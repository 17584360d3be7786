"""When a sync looks for processes that have outlived their container, and when it need not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from tests.support.pods import UID, observed, pod, seen
from tests.support.sync import FakeHost, on_host
from workers.kuberuntime import leftover_processes
from workers.kuberuntime.leftover_processes import MAX_PODS, SettledEnds
from workers.proc.container_tags import ContainerTag, container_tag

OF = pod("main", "other", share_process_namespace=True, restart_policy="Never")


class Processes:
    """Finds of a look for marked processes."""

    def __init__(self) -> None:
        self.left: list[ContainerTag] = []
        self.observation_requests: list[set[ContainerTag]] = []

    def end_tagged(self, marks: set[ContainerTag]) -> int:
        self.observation_requests.append(marks)
        found = [mark for mark in self.left if mark in marks]
        self.left = [mark for mark in self.left if mark not in marks]
        return len(found)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    made = Processes()
    monkeypatch.setattr(leftover_processes, "end_tagged", made.end_tagged)
    return made


def ended(name: str, of: Pod = OF, finished_at: float = 5.0, **fields: Any) -> RuntimeContainerStatus:
    fields = {"finished_at": finished_at, "leaves_processes": True, **fields}
    return seen(of, name, ContainerState.EXITED, **fields)


def test_after_an_end_all_processes_are_looked_at_until_nothing_is_left(tmp_path: Path, processes: Processes) -> None:
    main, other = (container_tag(UID, name, 0) for name in ("main", "other"))
    running = seen(OF, "other", ContainerState.RUNNING, leaves_processes=True)

    async def scenario(host: FakeHost) -> None:
        async def sync(*containers: RuntimeContainerStatus) -> int:
            """How often it looked."""
            before = len(processes.observation_requests)
            await host.sync(OF, view=observed(OF, *containers))
            return len(processes.observation_requests) - before

        processes.left = [main]
        observation_requests = [await sync(ended("main"), running) for _ in range(4)]
        assert (observation_requests, processes.observation_requests) == ([1, 1, 0, 0], [{main}, {main}])
        assert [await sync(ended("main"), ended("other")) for _ in range(2)] == [1, 0], "another end"
        assert processes.observation_requests[-1] == {main, other}
        assert [await sync(ended("main", finished_at=6.0), ended("other")) for _ in range(2)] == [1, 0], "a second life"
        assert await sync(ended("main", leaves_processes=False), running) == 0
        host.next_worker()
        assert await sync(ended("main"), ended("other")) == 1

    on_host(tmp_path, scenario)


def test_an_end_that_nobody_has_seen_yet_is_not_settled() -> None:
    settled, unseen = SettledEnds(), ended("main", finished_at=0.0)
    settled.add("u", [unseen])
    assert not settled.has("u", [unseen])
    assert settled.has("u", [])


def test_what_is_remembered_is_bounded() -> None:
    settled, end = SettledEnds(), [ended("main")]
    for number in range(MAX_PODS):
        settled.add(f"u{number}", end)
    settled.add("u0", end)  # the newest now
    settled.add("last", end)
    assert [settled.has(uid, end) for uid in ("u0", "u1", "u2", "last")] == [True, False, True, True]
    assert not settled.has("last", [msgspec.structs.replace(end[0], id="another")])
