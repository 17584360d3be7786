"""The pod worker on a real channel: one answer per request, one sync per pod, an end on every way out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.api.v1.config_objects import ConfigMap
from ipc.k8s.api.v1.env import ConfigMapEnvSource, EnvFromSource
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeType
from ipc.k8s.podobjects.config_objects import ConfigObjects
from ipc.link.eventloop.batch import LONGEST_S, BatchGate
from ipc.link.messages.base import EventReport, ProfileTaken, PullEnded, PullProgress, Ready, Shutdown, TakeProfile
from ipc.link.messages.pod_worker import (
    AbandonPull,
    BeginningKept,
    CancelSync,
    ContainerBegins,
    ContainersChanged,
    ObjectsRead,
    PodWorkerCommand,
    PodWorkerReport,
    ProbePod,
    ProbeResultChanged,
    ProbingStopped,
    PullFailure,
    PullImage,
    StopProbing,
    SyncDone,
    SyncPod,
    WorkType,
)
from ipc.link.shm.board import Board
from ipc.link.wire.boot import ChildContext, Role, WorkerSettings
from ipc.link.wire.channel import Channel
from tests.fakes.dialer import FakeDialer
from tests.fakes.ownership import LABEL_KEY
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from tests.fakes.steps_here import StepsHere
from tests.support.pods import IMAGE, UID, container, pod
from workers.kubecontainer.convert import pod_status
from workers.pod_worker import run_pod_worker
from workers.prober.outcome import Answer, ProbeOutcome, ProbeTarget

MASTER_WAIT_S = 5.0
SLOT = 2
LATENCY_S = 0.005
"""Latency of each fake runtime call, so that a sync takes longer than a message."""


async def attempt(probe: Probe, target: ProbeTarget) -> ProbeOutcome:
    """Every container is well."""
    return ProbeOutcome(Answer.SUCCESS)


Heard = (
    Ready | SyncDone | PullImage | AbandonPull | ContainerBegins | ProbeResultChanged | ProbingStopped | ProfileTaken
)


class Master:
    """The other end."""

    def __init__(self, channel: Channel[PodWorkerCommand, PodWorkerReport], board: Board, runtime: FakeRuntime) -> None:
        self.channel, self.board, self.runtime = channel, board, runtime
        self.events: list[EventReport] = []

    async def hear(self) -> Heard:
        """The next message that is no event."""
        async with asyncio.timeout(MASTER_WAIT_S):
            while isinstance(message := await self.channel.receive(), EventReport):
                self.events.append(message)
        assert message is not None, "the worker has closed its link"
        return message

    async def ask(self, request: SyncPod) -> SyncDone:
        await self.channel.send(request)
        done = await self.hear()
        assert isinstance(done, SyncDone)
        return done

    async def observe(self, uid: str = UID) -> RuntimePodStatus:
        """A fresh look, and onto row 0 of the board with it."""
        eyes = FakeRuntime(self.runtime.podman, "test")
        pods = await eyes.list_pods(uid)
        containers = [await eyes.inspect_container(id) for pod in pods for id, _ in pod.containers]
        status = pod_status(uid, pods, containers, SystemClock().now().mono)
        self.board.pod_writer(0).write(uid, status.observed_at, msgspec.msgpack.encode(status))
        return status


def request(generation: int = 1, kind: WorkType = WorkType.SYNC, **fields: Any) -> SyncPod:
    given = {"uid": UID, "pod": pod("a"), "row": 0, "min_observed_at": 0.0, **fields}
    return SyncPod(generation=generation, incarnation=7, kind=kind, **given)


@pytest.fixture
async def master(tmp_path: Path) -> AsyncIterator[Master]:
    """A worker that is ready, on a fake runtime; it must end by itself when its link does."""
    async with worker_of(tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def worker_of(tmp_path: Path, **fields: Any) -> AsyncIterator[Master]:
    clock, board = SystemClock(), Board.create(worker_slots=4, pod_rows=1)
    runtime = FakeRuntime(FakePodman(clock, images=[IMAGE]), "test", latency_s=LATENCY_S)
    ours, theirs = socket.socketpair()
    settings = WorkerSettings(
        instance="test", label_key=LABEL_KEY, node_name="n", podman_socket="", pod_logs_dir=str(tmp_path), **fields
    )
    context = ChildContext(
        slot=SLOT, incarnation=7, role=Role.POD_WORKER, settings=settings, link=theirs, listen=None, board=board
    )
    link = await Channel.open(theirs, PodWorkerReport, PodWorkerCommand)
    channel = await Channel.open(ours, PodWorkerCommand, PodWorkerReport)
    row_writer = board.worker_writer(SLOT)
    row_writer.begin(os.getpid(), 7)
    worker = asyncio.create_task(
        run_pod_worker(context, link, runtime, clock, row_writer, FakeDialer(), attempt, random.Random(0), StepsHere())
    )
    made = Master(channel, board, runtime)
    assert await made.hear() == Ready(pid=os.getpid())
    yield made
    channel.close()
    async with asyncio.timeout(MASTER_WAIT_S):
        await worker
    link.close()


async def test_a_profile_is_answered_beside_the_work(master: Master) -> None:
    await master.channel.send(TakeProfile(number=3, profile="goroutine", seconds=1))
    taken = await master.hear()
    assert isinstance(taken, ProfileTaken)
    assert (taken.number, taken.code) == (3, 200)
    assert "run_pod_worker" in taken.text


async def test_where_podman_forgets_a_container_starts_once_its_beginning_is_kept(tmp_path: Path) -> None:
    async with worker_of(tmp_path, podman_forgets=True) as master:
        await master.observe()
        await master.channel.send(request())
        begins = await master.hear()
        assert isinstance(begins, ContainerBegins)
        assert (begins.uid, begins.container.name, begins.container.attempt) == (UID, "a", 0)
        made = await master.observe()
        assert [(c.id, c.state, c.hash) for c in made.containers] == [
            (begins.container.id, ContainerState.CREATED, begins.container.hash)
        ]
        await master.channel.send(BeginningKept(uid=UID, id="another"))
        await master.channel.send(BeginningKept(uid=UID, id=begins.container.id))
        done = await master.hear()
        assert isinstance(done, SyncDone)
        assert not done.failed
        assert [c.state for c in (await master.observe()).containers] == [ContainerState.RUNNING]


async def test_a_cancelled_sync_waits_for_no_beginning(tmp_path: Path) -> None:
    async with worker_of(tmp_path, podman_forgets=True) as master:
        await master.observe()
        await master.channel.send(request())
        assert isinstance(await master.hear(), ContainerBegins)
        await master.channel.send(CancelSync(uid=UID, generation=1))
        done = await master.hear()
        assert isinstance(done, SyncDone)
        assert done.cancelled
        assert [c.state for c in (await master.observe()).containers] == [ContainerState.CREATED]


async def test_a_sync_reads_the_row_and_is_answered_once(master: Master) -> None:
    await master.observe()
    done = await master.ask(request(3))
    assert (done.uid, done.generation, done.incarnation, done.error) == (UID, 3, 7, "")
    assert [result.action.value for result in done.results] == ["CreatePodSandbox", "StartContainer"]
    assert [event.reason for event in master.events] == ["Pulled", "Created", "Started"]
    row = master.board.read_worker(SLOT)
    assert row is not None
    assert (row.counters.syncs, row.counters.sync_errors, row.counters.runtime_errors) == (1, 0, 0)
    assert row.counters.runtime_calls == len(master.runtime.calls)


@pytest.mark.parametrize(
    ("rows", "fields"),
    [
        ([], {}),
        (["another pod's"], {}),
        ([UID], {"min_observed_at": 1e12}),
        ([UID], {"row": -1}),
    ],
    ids=["nothing there", "of another pod", "too old", "no row"],
)
async def test_without_a_fresh_view_nothing_happens(master: Master, rows: list[str], fields: dict[str, Any]) -> None:
    for uid in rows:
        await master.observe(uid)
    done = await master.ask(request(**fields))
    assert (done.error, done.changed, list(master.runtime.calls)) == ("StaleView", False, [])


async def test_a_row_that_was_only_touched_counts_with_its_new_date(master: Master) -> None:
    status = await master.observe()
    writer = master.board.pod_writer(0)
    writer.write(UID, status.observed_at, msgspec.msgpack.encode(status))
    writer.touch(status.observed_at + 5)
    done = await master.ask(request(min_observed_at=status.observed_at + 5))
    assert done.error == ""


async def test_a_second_sync_of_a_pod_in_flight_is_refused(master: Master) -> None:
    await master.observe()
    await master.channel.send(request(1))
    refused = await master.ask(request(2))
    assert (refused.generation, refused.error) == (2, "Internal")
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert (done.generation, done.error) == (1, "")


async def test_a_cancelled_sync_answers_and_the_next_one_goes_on(master: Master) -> None:
    await master.observe()
    await master.ask(request(1))
    view = await master.observe()
    assert view.is_running()
    stop = request(2, WorkType.TERMINATING, min_observed_at=view.observed_at, grace_period_s=600)
    await master.channel.send(stop)
    await master.channel.send(CancelSync(uid=UID, generation=1))  # of another generation: nobody's
    await master.channel.send(CancelSync(uid=UID, generation=2))
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert (done.generation, done.cancelled) == (2, True)


async def test_an_unexpected_error_is_an_answer_and_not_the_end(
    master: Master, caplog: pytest.LogCaptureFixture
) -> None:
    await master.observe()

    async def broken(spec: object) -> str:
        raise ZeroDivisionError("a bug")

    master.runtime.create_pod = broken  # type: ignore[method-assign]
    done = await master.ask(request(1))
    assert (done.error, done.message) == ("Internal", "ZeroDivisionError: a bug")
    assert "Traceback" in caplog.text
    master.board.pod_writer(0).write(UID, 1.0, b"\xc1 not msgpack")
    assert (await master.ask(request(2))).error == "Internal"


async def test_an_unexpected_error_before_the_sync_is_an_answer_too(master: Master) -> None:
    """A pod whose sync is never answered never gets another one."""
    await master.observe()
    with patch.object(BatchGate, "over", side_effect=ZeroDivisionError("a bug")):
        done = await master.ask(request(1))
    assert (done.error, done.message) == ("Internal", "ZeroDivisionError: a bug")
    assert not (await master.ask(request(2))).error


async def test_a_sync_waits_for_what_its_pod_refers_to(master: Master) -> None:
    await master.observe()
    wanted = pod(container("a", env_from=(EnvFromSource(config_map_ref=ConfigMapEnvSource(name="config")),)))
    await master.channel.send(request(pod=wanted, awaits=True))
    await master.channel.send(ObjectsRead(uid=UID, generation=9, objects=ConfigObjects()))  # nobody's
    await asyncio.sleep(2 * LONGEST_S)
    assert not master.runtime.calls, "nothing is done before"
    found = ConfigMap(metadata=ObjectMeta(name="config", namespace="default"), data={"GREETING": "hello"})
    await master.channel.send(ObjectsRead(uid=UID, generation=1, objects=ConfigObjects(config_maps={"config": found})))
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert [(result.action.value, result.error) for result in done.results] == [
        ("CreatePodSandbox", ""),
        ("StartContainer", ""),
    ]


async def test_a_sync_that_waits_can_be_cancelled(master: Master) -> None:
    await master.observe()
    await master.channel.send(request(awaits=True))
    await master.channel.send(CancelSync(uid=UID, generation=1))
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert (done.cancelled, list(master.runtime.calls)) == (True, [])


async def test_shutdown_ends_the_sync_in_flight(master: Master) -> None:
    await master.observe()
    await master.ask(request(1))
    await master.observe()
    await master.channel.send(request(2, WorkType.TERMINATING, grace_period_s=600))
    await master.channel.send(Shutdown())
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert (done.generation, done.cancelled) == (2, True)


REMOTE = "registry.test/app:1"


async def begin_pull(master: Master, generation: int = 1, **fields: Any) -> None:
    """A sync that has asked for its image."""
    await master.observe()
    await master.channel.send(request(generation, pod=pod(container("a", image=REMOTE)), **fields))
    assert await master.hear() == PullImage(uid=UID, reference=REMOTE)


async def test_a_pull_is_asked_for_and_waited_for(master: Master) -> None:
    await begin_pull(master)
    await master.channel.send(PullProgress(reference=REMOTE, words="copying"))
    master.runtime.podman.registry.add(REMOTE)
    image_id = await master.runtime.pull_image(REMOTE, lambda words: None)
    await master.channel.send(PullEnded(reference=REMOTE, image_id=image_id, took_s=2.5))
    assert await master.hear() == AbandonPull(uid=UID, reference=REMOTE)
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert [(result.target, result.error) for result in done.results][-1] == ("a", "")
    assert done.pull_failures == ()
    assert [event.reason for event in master.events] == ["Pulling", "Pulled", "Created", "Started"]
    assert '"registry.test/app:1" in 2.5s (' in master.events[1].message


async def test_a_failed_pull_travels_with_the_answer_and_holds_the_next_sync_back(master: Master) -> None:
    await begin_pull(master)
    await master.channel.send(PullEnded(reference=REMOTE, error="Pull", message="manifest unknown"))
    assert await master.hear() == AbandonPull(uid=UID, reference=REMOTE)
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert [(result.error, result.message) for result in done.results][-1] == ("ErrImagePull", "manifest unknown")
    (failure,) = done.pull_failures
    assert (failure.image, failure.backoff_s, failure.message) == (REMOTE, 10.0, "manifest unknown")
    await master.observe()
    again = await master.ask(request(2, pod=pod(container("a", image=REMOTE)), pull_failures=done.pull_failures))
    assert again.results[-1].error == "ImagePullBackOff"
    assert again.results[-1].retry_at == failure.updated_at + 10.0
    assert again.pull_failures == done.pull_failures


@pytest.mark.parametrize("kind", [WorkType.TERMINATING, WorkType.TERMINATED])
async def test_what_is_remembered_comes_back_also_from_syncs_that_need_no_image(master: Master, kind: WorkType) -> None:
    await master.observe()
    known = (PullFailure(image=REMOTE, backoff_s=20.0, updated_at=SystemClock().now().wall, message="no"),)
    assert (await master.ask(request(1, kind, pull_failures=known, grace_period_s=1))).pull_failures == known


async def test_a_cancelled_sync_gives_its_pull_up(master: Master) -> None:
    await begin_pull(master)
    await master.channel.send(CancelSync(uid=UID, generation=1))
    answers = [await master.hear(), await master.hear()]
    assert AbandonPull(uid=UID, reference=REMOTE) in answers
    assert [answer.cancelled for answer in answers if isinstance(answer, SyncDone)] == [True]


async def test_podman_s_absence_during_a_pull_is_no_failure_of_the_image(master: Master) -> None:
    await begin_pull(master)
    await master.channel.send(PullEnded(reference=REMOTE, error="Unavailable", message="gone"))
    await master.hear()
    done = await master.hear()
    assert isinstance(done, SyncDone)
    assert (done.error, done.pull_failures) == ("Unavailable", ())


async def test_a_probed_pod_is_told_ready_until_it_is_probed_no_more(master: Master) -> None:
    probe = Probe(exec=ExecAction(command=("true",)), period_seconds=1, timeout_seconds=1)
    probed = pod(container("a", readiness_probe=probe))
    await master.channel.send(ProbePod(uid=UID, pod=probed, row=0))
    await master.observe()
    await master.ask(request(pod=probed))
    status = await master.observe()
    await master.channel.send(ContainersChanged(uid=UID))
    assert await master.hear() == ProbeResultChanged(
        uid=UID,
        name="a",
        container_id=status.containers[0].id,
        probe=ProbeType.READINESS,
        result=ProbeResult.SUCCESS,
    )
    await master.channel.send(StopProbing(uid=UID))
    assert await master.hear() == ProbingStopped(uid=UID)
