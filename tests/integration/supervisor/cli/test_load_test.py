"""The load test against a real API server, and its figures on their own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
from typing import Any

import pytest
import yaml

from ipc.link.messages.api_server import ApplyManifests, DeletePod, Reply
from supervisor.cli.commands.operating.load_test import ProgressBar
from supervisor.client.http import WatchEvent
from supervisor.load_test.generate import BATCH_PODS, NAMESPACE, RUN_LABEL, Load, batches
from supervisor.load_test.measure import Percentiles, Tracker, percentiles
from supervisor.load_test.processes import Usage, started_between, take_snapshot, used_between
from tests.support.api_server import DEADLINE_S, Master, agent_changed, eventually, pod_changed, status_of
from tests.support.cli import start

PENDING = status_of(phase="Pending")


class Cluster:
    """Plays an agent that starts and ends pods at once; ``stuck`` ones never become Ready."""

    def __init__(self, master: Master, stuck: frozenset[int] = frozenset(), *, without_image: bool = False) -> None:
        self.names: set[str] = set()
        self.created = 0
        self._master = master
        self._stuck = stuck
        self._without_image = without_image
        self._version = 0
        master.answer = self.answer
        master.ready()
        master.feed(agent_changed(pid=os.getpid()))

    def answer(self, request: Any) -> Reply:
        if isinstance(request, ApplyManifests):
            for pod in yaml.safe_load_all(request.body):
                self._start(pod["metadata"]["name"], pod["metadata"]["labels"])
        if isinstance(request, DeletePod):
            if request.name not in self.names:
                return Reply(request_id=request.request_id, code=404, reason="NotFound", message="gone")
            self.names.remove(request.name)
            self._master.gone(self._next(), request.name)
        return Reply(request_id=request.request_id, code=200)

    def _start(self, name: str, labels: dict[str, str]) -> None:
        self.names.add(name)
        self.created += 1
        self._master.feed(pod_changed(self._next(), name, namespace=NAMESPACE, labels=labels, status=PENDING))
        if self._without_image:
            waiting = {"name": "app", "image": "x", "imageID": "", "state": {"waiting": {"reason": "ErrImagePull"}}}
            status = status_of(phase="Pending", containerStatuses=[waiting])
            self._master.feed(pod_changed(self._next(), name, namespace=NAMESPACE, labels=labels, status=status))
        elif int(name.rsplit("-", 1)[1]) not in self._stuck:
            self._master.feed(pod_changed(self._next(), name, namespace=NAMESPACE, labels=labels))

    def _next(self) -> int:
        self._version += 1
        return self._version


async def test_a_run(master: Master) -> None:
    cluster = Cluster(master)
    process = await start(master, "load-test", "--pods", "60", "--containers", "2", "--json", "--timeout", "20s")
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err
    told = err.decode().splitlines()
    assert told[-1] == "gone: 60 of 60"
    assert len(told) <= 2 * 11, "a line for each tenth of a phase"
    report = json.loads(out)
    assert (report["pods"], report["ready"], report["containers"]) == (60, 60, 2)
    assert report["podsPerSecond"] > 0
    assert report["timeToReadySeconds"]["samples"] == 60
    assert 0 < report["timeToReadySeconds"]["p50"] <= report["timeToReadySeconds"]["p99"] <= report["allReadySeconds"]
    assert report["deleteSeconds"] > 0
    assert next(p for p in report["agent"] if p["name"] == "master")["pssBytes"] > 1024**2
    assert report["problems"] == []
    assert (cluster.created, cluster.names) == (60, set())


async def test_pods_that_never_become_ready(master: Master) -> None:
    cluster = Cluster(master, stuck=frozenset({3}))
    process = await start(master, "load-test", "--pods", "5", "--timeout", "1s")
    async with asyncio.timeout(DEADLINE_S):
        out, _ = await process.communicate()
    assert process.returncode == 1
    assert b"Pods Ready:" in out
    assert b" 4 of 5 " in out
    assert b"-3: not Ready in time" in out
    assert cluster.names == set()


async def test_a_load_that_does_not_fit_starts_nothing(master: Master) -> None:
    cluster = Cluster(master)
    process = await start(master, "load-test", "--pods", "900")
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert b"900 pods do not fit" in err
    assert cluster.created == 0


async def test_a_refused_apply_ends_the_run(master: Master) -> None:
    cluster = Cluster(master)

    def refuse(request: Any) -> Reply:
        if isinstance(request, ApplyManifests):
            return Reply(request_id=request.request_id, code=422, reason="Invalid", message="no such image")
        return cluster.answer(request)

    master.answer = refuse
    process = await start(master, "load-test", "--pods", "3", "--json", "--timeout", "20s")
    async with asyncio.timeout(DEADLINE_S):
        out, _ = await process.communicate()
    assert process.returncode == 1
    assert "Error from server (Invalid): no such image" in json.loads(out)["problems"]


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_run_cleans_up(master: Master, signum: signal.Signals) -> None:
    cluster = Cluster(master, stuck=frozenset({0}))
    process = await start(master, "load-test", "--pods", "30", "--timeout", "60s")
    await eventually(lambda: cluster.created == 30, "all pods were created")
    process.send_signal(signum)
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode == -signal.SIGINT
    assert cluster.names == set()
    assert out == b""
    assert b"Traceback" not in err


def test_batches_hold_every_pod_once() -> None:
    load = Load(run="abc", pods=BATCH_PODS * 2 + 1, containers=3, image="img", namespace="default")
    found = [pod for batch in batches(load) for pod in yaml.safe_load_all(batch.body)]
    assert [pod["metadata"]["name"] for pod in found] == load.names()
    assert {pod["metadata"]["labels"][RUN_LABEL] for pod in found} == {"abc"}
    assert {len(pod["spec"]["containers"]) for pod in found} == {3}


@pytest.mark.parametrize(
    ("durations", "expected"),
    [
        ([], None),
        ([2.0], Percentiles(2.0, 2.0, 1)),
        ([3.0, 1.0], Percentiles(1.0, 3.0, 2)),
        ([float(n) for n in range(1, 201)], Percentiles(100.0, 198.0, 200)),
    ],
)
def test_percentiles(durations: list[float], expected: Percentiles | None) -> None:
    assert percentiles(durations) == expected


def event(name: str, type: str = "MODIFIED", observed_at: float = 0.0, ready: str = "False") -> WatchEvent:
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return WatchEvent(type, {"metadata": {"name": name}, "status": status}, observed_at)


def test_freshness_counts_each_observation_once() -> None:
    tracker = Tracker(["a"])
    for observed_at, arrived_at in ((10.0, 10.5), (10.0, 11.0), (12.0, 12.25), (0.0, 13.0)):
        tracker.see(event("a", observed_at=observed_at), arrived_at)
    tracker.see(event("somebody-else", observed_at=20.0), 21.0)
    assert tracker.observe_to_status_s == [0.5, 0.25]


def test_time_to_ready_ends_with_the_first_ready() -> None:
    tracker = Tracker(["a", "b"])
    tracker.applied(["a", "b"], 1.0)
    tracker.see(event("a", ready="True"), 2.0)
    assert (tracker.ready, tracker.settled, tracker.all_ready_s()) == (1, False, None)
    tracker.see(event("b", ready="True"), 4.0)
    tracker.see(event("a", ready="True"), 9.0)
    assert sorted(tracker.time_to_ready_s()) == [1.0, 3.0]
    assert (tracker.settled, tracker.all_ready_s()) == (True, 3.0)


def test_a_failed_pod_is_not_waited_for() -> None:
    tracker = Tracker(["a"])
    failed = WatchEvent("MODIFIED", {"metadata": {"name": "a"}, "status": {"phase": "Failed", "reason": "OutOfpods"}})
    tracker.see(failed, 1.0)
    assert tracker.settled
    assert tracker.not_ready() == {"a": "Failed: OutOfpods"}


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"])
def test_a_pod_without_its_image_is_not_waited_for(reason: str) -> None:
    tracker = Tracker(["a"])
    states = [{"state": {"waiting": {"reason": each}}} for each in ("ContainerCreating", reason)]
    for statuses in (states[:1], states):
        assert not tracker.settled
        status = {"phase": "Pending", "containerStatuses": statuses}
        tracker.see(WatchEvent("MODIFIED", {"metadata": {"name": "a"}, "status": status}), 1.0)
    assert tracker.settled
    assert tracker.not_ready() == {"a": reason}


async def test_a_host_without_the_demo_image_is_told_what_makes_it(master: Master) -> None:
    cluster = Cluster(master, without_image=True)
    process = await start(master, "load-test", "--pods", "2")
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode == 1
    assert "ErrImagePull" in out.decode()
    assert "configs/demo/image makes this image; or name another with --image" in err.decode()
    assert cluster.names == set()


def test_usage_is_what_the_run_added() -> None:
    def usage(name: str, pid: int, cpu_s: float) -> Usage:
        return Usage(name=name, pid=pid, pss_bytes=pid, cpu_seconds=cpu_s)

    assert used_between([usage("master", 1, 2.0)], [usage("master", 1, 5.0)]) == [usage("master", 1, 3.0)]
    before = {10: usage("conmon", 10, 1.0)}
    after = before | {11: usage("conmon", 11, 0.5), 12: usage("conmon", 12, 0.25), 13: usage("pasta", 13, 0.1)}
    conmon, pasta = started_between(before, after)
    assert (conmon.name, conmon.count, conmon.pss_bytes, conmon.cpu_seconds) == ("conmon", 2, 23, 0.75)
    assert pasta.count == 1


def test_snapshot_of_a_real_family() -> None:
    found = take_snapshot(os.getpid(), [])
    assert found.agent[0].name == "master"
    assert found.agent[0].pss_bytes > 1024**2
    assert take_snapshot(2**22, []).agent == ()


# --- progress ----------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for stderr in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stderr)
        with ProgressBar() as progress:
            for phase, done in (("start", 0), ("start", 7), ("start", 10), ("delete", 4), ("delete", 3)):
                progress.show(phase, done, 10)
        shown[stderr.isatty()] = stderr.getvalue()
    assert [words in shown[True] for words in (" start ", " 10/10", "delete ", " 4/10", " 3/10")] == [True] * 5
    lines = ["start: 0 of 10", "start: 7 of 10", "start: 10 of 10", "delete: 4 of 10", "delete: 3 of 10"]
    assert shown[False].splitlines() == lines
