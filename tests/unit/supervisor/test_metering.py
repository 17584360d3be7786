"""Counts of the sync loop's input and output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ipc.host.clock import Instant
from ipc.k8s.api.decode import decode_pod
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.messages.base import PullEnded
from ipc.link.messages.node_worker import Observation
from ipc.link.messages.pod_worker import AbandonPull, PullImage, SyncDone, SyncPod, WorkType
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet, rootlet
from ipc.link.metrics.table import LAYOUT
from ipc.link.shm.metric_cells import METERS
from supervisor.metering import LoopMeter, end_of, is_stateful, merged_s
from supervisor.protocol.events import LoopEvent, Observations, PullRequest
from supervisor.protocol.source_updates import PodOperation, PodUpdate
from tests.support.manifests import pod as desired_pod

UID, WALL = "uid-web", 1_700_000_000.0
SLOT = 4


@pytest.fixture(autouse=True)
def _from_zero() -> Iterator[None]:
    METERS.detach()
    yield
    METERS.detach()


def at(seconds: float) -> Instant:
    return Instant(mono=100.0 + seconds, wall=WALL + seconds)


def web(*, init: bool = False) -> Pod:
    inits = [{"name": "prepare", "image": "busybox"}] if init else []
    return decode_pod(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default", "uid": UID},
            "spec": {"initContainers": inits, "containers": [{"name": "app", "image": "busybox"}]},
        }
    )


def container(name: str = "app", id: str = "c1", **fields: Any) -> RuntimeContainerStatus:
    state = ContainerState.EXITED if fields.get("finished_at") else ContainerState.RUNNING
    return RuntimeContainerStatus(id=id, name=name, attempt=0, state=state, **fields)


class Loop:
    """The meter, told what a test says at which second."""

    def __init__(self) -> None:
        self.meter = LoopMeter()

    def took(self, seconds: float, event: LoopEvent) -> None:
        self.meter.took(event, at(seconds))

    def stated(self, seconds: float = 0.0, op: PodOperation = PodOperation.ADD, *, init: bool = False) -> None:
        self.took(seconds, PodUpdate(op=op, source="file", pods=(web(init=init),)))

    def sent(self, seconds: float, generation: int = 1, kind: WorkType = WorkType.SYNC) -> None:
        message = SyncPod(
            uid=UID, generation=generation, incarnation=1, kind=kind, pod=None, row=0, min_observed_at=0.0
        )
        self.meter.sent(message, at(seconds))

    def done(self, seconds: float, generation: int = 1, kind: WorkType = WorkType.SYNC, **fields: Any) -> None:
        self.took(seconds, SyncDone(uid=UID, generation=generation, incarnation=1, kind=kind, **fields))

    def observed(self, seconds: float, *containers: RuntimeContainerStatus) -> None:
        status = RuntimePodStatus(uid=UID, containers=containers)
        self.took(
            seconds,
            Observations((Observation(uid=UID, observed_at=100.0 + seconds, changed=True, status=status),)),
        )


@pytest.fixture
def loop() -> Loop:
    return Loop()


def seconds_of(metric: Any) -> float:
    """Sum of a histogram without labels."""
    return float(METERS.cells[LAYOUT.cell(metric) + metric.width - 1])


def operations() -> dict[str, float]:
    counts = {name: METERS.value(kubelet.POD_WORKER_DURATION, name) for name in kubelet.POD_WORKER_OPERATIONS}
    return {name: count for name, count in counts.items() if count}


def test_syncs_are_told_apart_by_what_they_were_for(loop: Loop) -> None:
    loop.stated()
    for generation, op in enumerate((None, None, PodOperation.UPDATE), start=1):
        if op is not None:
            loop.stated(5.0, op)
        loop.sent(generation, generation)
        loop.done(generation + 0.5, generation)
    loop.sent(10.0, 4, WorkType.TERMINATING)
    loop.done(11.0, 4, WorkType.TERMINATING)
    loop.sent(12.0, 5, WorkType.TERMINATED)
    loop.done(13.0, 5, WorkType.TERMINATED)
    assert operations() == {"create": 1.0, "sync": 1.0, "update": 1.0, "kill": 1.0, "terminated": 1.0}
    assert seconds_of(kubelet.POD_WORKER_START_DURATION) == 1.0


def test_an_answer_of_another_generation_has_no_duration(loop: Loop) -> None:
    loop.stated()
    loop.sent(1.0, 2)
    loop.done(2.0, 1)
    assert operations() == {}
    loop.done(3.0, 2)
    assert operations() == {"create": 1.0}


@pytest.mark.parametrize(
    ("fields", "error"),
    [({}, ""), ({"error": SyncError.TIMEOUT}, "Timeout"), ({"cancelled": True}, "Cancelled")],
)
def test_ends_of_syncs_are_counted_by_error(loop: Loop, fields: dict[str, Any], error: str) -> None:
    loop.done(1.0, **fields)
    assert METERS.value(rootlet.SYNCS, error) == 1.0


def test_a_start_is_over_when_all_containers_have_run(loop: Loop) -> None:
    loop.stated()
    loop.observed(1.0)
    loop.observed(3.0, container(started_at=WALL + 2.0))
    loop.observed(9.0, container(started_at=WALL + 2.0))
    for metric in (kubelet.POD_START_DURATION, kubelet.POD_START_TOTAL_DURATION, kubelet.POD_START_SLI_DURATION):
        assert (METERS.value(metric), seconds_of(metric)) == (1.0, 3.0)


def test_pulls_and_init_containers_are_no_part_of_the_indicator(loop: Loop) -> None:
    loop.stated(init=True)
    pull = PullImage(uid=UID, reference="busybox")
    loop.took(1.0, PullRequest(SLOT, pull))
    loop.took(1.5, PullRequest(SLOT, pull))
    loop.took(4.0, PullEnded(reference="busybox"))
    prepare = container("prepare", "c0", started_at=WALL + 3.0, finished_at=WALL + 6.0)
    loop.observed(8.0, container(started_at=WALL + 7.0), prepare)
    assert seconds_of(kubelet.POD_START_TOTAL_DURATION) == 8.0
    assert seconds_of(kubelet.POD_START_SLI_DURATION) == pytest.approx(3.0)


def test_a_pull_that_is_given_up_counts_as_long_as_it_was_waited_for(loop: Loop) -> None:
    loop.stated()
    loop.took(1.0, PullRequest(SLOT, PullImage(uid=UID, reference="busybox")))
    loop.took(2.0, PullRequest(SLOT, AbandonPull(uid=UID, reference="busybox")))
    loop.observed(5.0, container(started_at=WALL + 4.0))
    assert seconds_of(kubelet.POD_START_SLI_DURATION) == pytest.approx(4.0)


def test_a_pod_with_a_volume_of_others_is_no_part_of_the_indicator() -> None:
    own = [{"name": "own", "emptyDir": {}}, {"name": "objects", "projected": {"sources": []}}]
    assert not is_stateful(desired_pod(volumes=own))
    assert is_stateful(desired_pod(volumes=[*own, {"name": "of-the-host", "hostPath": {"path": "/srv"}}]))


def test_a_pod_that_ran_before_the_agent_has_not_started_now(loop: Loop) -> None:
    loop.stated(op=PodOperation.RESTORE)
    loop.observed(1.0, container(started_at=WALL - 60.0))
    assert METERS.value(kubelet.POD_START_DURATION) == METERS.value(kubelet.POD_START_TOTAL_DURATION) == 0.0


def test_an_end_is_counted_once(loop: Loop) -> None:
    loop.stated()
    ended = container(started_at=WALL + 1.0, finished_at=WALL + 2.0, exit_code=3)
    loop.observed(3.0, ended)
    loop.observed(4.0, ended)
    assert METERS.value(kubelet.TERMINATED_CONTAINERS, "container", "3", "Error") == 1.0


def test_an_end_before_the_agent_is_not_counted(loop: Loop) -> None:
    loop.stated()
    loop.observed(3.0, container(started_at=WALL - 9.0, finished_at=WALL - 2.0, exit_code=3))
    assert METERS.value(kubelet.TERMINATED_CONTAINERS, "container", "3", "Error") == 0.0


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({}, ("0", "Completed")),
        ({"exit_code": 255}, ("255", "Error")),
        ({"exit_code": 137, "oom_killed": True}, ("137", "OOMKilled")),
        ({"exit_code": 137, "reason": "ContainerStatusUnknown"}, ("137", "ContainerStatusUnknown")),
        ({"exit_code": -1}, ("other", "other")),
        ({"exit_code": 1, "reason": "Whatever"}, ("other", "other")),
    ],
)
def test_reasons_of_ends(fields: dict[str, Any], end: tuple[str, str]) -> None:
    assert end_of(container(finished_at=WALL, **fields)) == end


@pytest.mark.parametrize(
    ("intervals", "seconds"),
    [([], 0.0), ([(1.0, 2.0)], 1.0), ([(5.0, 6.0), (1.0, 3.0), (2.0, 4.0)], 4.0), ([(1.0, 9.0), (2.0, 3.0)], 8.0)],
)
def test_time_within_intervals(intervals: list[tuple[float, float]], seconds: float) -> None:
    assert merged_s(intervals) == seconds


def test_what_is_not_known_is_passed_over(loop: Loop) -> None:
    loop.sent(1.0)
    loop.done(2.0)
    loop.observed(3.0, container(started_at=WALL))
    loop.took(4.0, PullEnded(reference="busybox"))
    assert operations() == {}


def test_no_pod_is_remembered_for_ever(loop: Loop) -> None:
    """Neither one that was rejected, and so had no sync, nor one that was removed again after its end."""
    loop.stated()
    loop.stated(1, PodOperation.REMOVE)
    assert loop.meter.pods == 0
    loop.stated(2)
    loop.sent(3)
    loop.stated(4, PodOperation.REMOVE)
    assert loop.meter.pods == 1, "its last sync is still to come"
    loop.sent(5, generation=2, kind=WorkType.TERMINATED)
    loop.done(6, generation=2, kind=WorkType.TERMINATED)
    assert loop.meter.pods == 0
    loop.stated(7, PodOperation.REMOVE)
    assert loop.meter.pods == 0
