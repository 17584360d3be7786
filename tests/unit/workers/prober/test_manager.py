"""The probes of a pod on simulated time: when each attempt comes, and what the master is told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults, ProbeType
from ipc.link.messages.base import EventReport
from ipc.link.messages.pod_worker import ContainersChanged, ProbePod, ProbeResultChanged, ProbingStopped
from ipc.link.shm.board import Board
from tests.fakes.clock import START_MONO, SimClock, simulate
from tests.support.pods import UID, container, observed, pod, seen
from workers.prober import manager
from workers.prober.events import MAX_OUTPUT_CHARS
from workers.prober.manager import MAX_TRIES, OVERTIME_S, UNREADABLE_RETRY_S, PodProber
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome, ProbeTarget

STARTUP, LIVENESS, READINESS = ProbeType.STARTUP, ProbeType.LIVENESS, ProbeType.READINESS
SUCCESS, FAILURE = ProbeResult.SUCCESS, ProbeResult.FAILURE
YES, NO = ProbeOutcome(Answer.SUCCESS), ProbeOutcome(Answer.FAILURE, "it is ill")
RUNNING, EXITED = ContainerState.RUNNING, ContainerState.EXITED
Carried = Callable[[float], Awaitable[ProbeOutcome]]
"""Result of an attempt, by the time of its beginning."""


def probe(kind: ProbeType, **fields: Any) -> Probe:
    """The defaults of Kubernetes, and a command by which an attempt knows it."""
    times = {"timeout_seconds": 1, "period_seconds": 10, "success_threshold": 1, "failure_threshold": 3}
    return Probe(exec=ExecAction(command=(kind.value,)), **{**times, **fields})


def probed(name: str = "a", **probes: Probe) -> Container:
    return container(name, **{f"{kind}_probe": made for kind, made in probes.items()})


def said(outcome: ProbeOutcome) -> Carried:
    async def carried(at_s: float) -> ProbeOutcome:
        return outcome

    return carried


class Stage:
    """A worker's prober, the row of one pod, and everything that comes out. Times count from the beginning."""

    def __init__(self, of: Pod, seed: int = 0) -> None:
        self.of = of
        self.clock = SimClock()
        self.board = Board.create(worker_slots=1, pod_rows=1)
        self.attempts: list[tuple[float, str]] = []
        """(When, ``probe container-id``)"""
        self.probe_results: list[tuple[float, str, ProbeResult]] = []
        self.events: list[str] = []
        self.stopped: list[float] = []
        self.known: dict[str, ProbeResults] = {}
        """By container id, as the master knows it."""
        self.answers: dict[str, Carried] = {}
        self.prober = self.next_worker(seed)

    def next_worker(self, seed: int) -> PodProber:
        self.prober = PodProber(self.board, self.clock, self._attempt, self._take, random.Random(seed))
        return self.prober

    @property
    def now(self) -> float:
        return round(self.clock.now().mono - START_MONO, 3)

    async def begin(self, **command: Any) -> None:
        await self.prober.probe(ProbePod(uid=UID, **{"pod": self.of, "row": 0, "probe_results": self.known, **command}))

    async def show(self, *containers: RuntimeContainerStatus, tell: bool = True) -> None:
        status = observed(self.of, *containers)
        self.board.pod_writer(0).write(UID, self.clock.now().mono, msgspec.msgpack.encode(status))
        if tell:
            await self.prober.containers_changed(ContainersChanged(uid=UID, probe_results=self.known))

    def runs(self, name: str = "a", attempt: int = 0, *, for_s: float = 0.0) -> RuntimeContainerStatus:
        return seen(self.of, name, RUNNING, attempt, started_at=self.clock.now().wall - for_s)

    def times(self, what: str = "") -> list[float]:
        return [at for at, attempt in self.attempts if attempt.startswith(what)]

    async def _attempt(self, probe: Probe, target: ProbeTarget) -> ProbeOutcome:
        assert probe.exec is not None
        kind, at_s = probe.exec.command[0], self.now
        self.attempts.append((at_s, f"{kind} {target.container_id}"))
        return await self.answers.get(kind, said(YES))(at_s)

    async def _take(self, report: ProbeResultChanged | EventReport | ProbingStopped) -> None:
        match report:
            case ProbeResultChanged():
                self.probe_results.append((self.now, f"{report.probe} {report.container_id}", report.result))
                known = self.known.get(report.container_id, ProbeResults())
                self.known[report.container_id] = known.changed(report.probe, report.result)
            case EventReport():
                self.events.append(f"{report.reason} {report.field_path}: {report.message}")
            case ProbingStopped():
                self.stopped.append(self.now)


def play(of: Pod, scene: Callable[[Stage], Awaitable[None]], **stage: Any) -> Stage:
    made: list[Stage] = []

    async def main() -> None:
        made.append(Stage(of, **stage))
        await scene(made[0])
        await made[0].prober.close()

    simulate(main)
    return made[0]


# --- one probe ---


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ({}, [2.0, 12.0, 22.0]),
        ({"period_seconds": 3}, [2.0, 5.0, 8.0, 11.0, 14.0, 17.0, 20.0, 23.0, 26.0, 29.0]),
        ({"initial_delay_seconds": 5}, [7.0, 17.0, 27.0]),
        ({"period_seconds": 0}, [2.0, 12.0, 22.0]),
    ],
)
def test_attempts_come_when_they_are_due(times: Mapping[str, int], wanted: list[float]) -> None:
    """The container starts after two seconds."""

    async def scene(stage: Stage) -> None:
        await stage.begin()
        await asyncio.sleep(2.0)
        await stage.show(stage.runs())
        await asyncio.sleep(28.0)

    stage = play(pod(probed(readiness=probe(READINESS, **times))), scene)
    assert stage.times() == wanted
    assert stage.probe_results == [(wanted[0], "readiness a-0", SUCCESS)]


def test_an_attempt_that_takes_its_time_delays_no_other() -> None:
    async def slowly(at_s: float) -> ProbeOutcome:
        await asyncio.sleep(9.0)
        return YES

    async def scene(stage: Stage) -> None:
        stage.answers["liveness"] = slowly
        await stage.begin()
        await stage.show(stage.runs(), stage.runs("b"))
        await asyncio.sleep(5.5)

    every_second = {"period_seconds": 1, "timeout_seconds": 9}
    of = pod(
        probed("a", liveness=probe(LIVENESS, **every_second), readiness=probe(READINESS, **every_second)),
        probed("b", readiness=probe(READINESS, **every_second)),
    )
    stage = play(of, scene)
    assert stage.times("readiness a") == stage.times("readiness b") == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert stage.times("liveness a") == [0.0]


def test_attempts_that_hang_keep_no_other_pod_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when they are more than all that one worker carries out at once."""
    monkeypatch.setattr(manager, "MAX_MORE_PROBES", 4)
    names = [f"c{number}" for number in range(manager.PROBES_OF_A_POD + 10)]
    greedy = pod(*(probed(name, liveness=probe(LIVENESS, timeout_seconds=3600)) for name in names))
    modest = pod(probed(readiness=probe(READINESS, period_seconds=1)), uid="modest")

    async def for_ever(at_s: float) -> ProbeOutcome:
        await asyncio.sleep(3600.0)
        return YES

    async def scene(stage: Stage) -> None:
        stage.answers["liveness"] = for_ever
        await stage.begin()
        await stage.show(*(stage.runs(name) for name in names))
        await asyncio.sleep(1.0)
        shown = observed(modest, seen(modest, "a", RUNNING, started_at=stage.clock.now().wall))
        await stage.prober.probe(ProbePod(uid="modest", pod=modest, row=-1, status=shown, probe_results={}))
        await asyncio.sleep(3.5)

    stage = play(greedy, scene)
    assert len(stage.times("liveness")) == manager.PROBES_OF_A_POD + 4
    assert stage.times("readiness") == [1.0, 2.0, 3.0, 4.0]


def test_a_failed_liveness_is_told_once_and_holds_until_another_container_runs() -> None:
    async def scene(stage: Stage) -> None:
        stage.answers["liveness"] = said(NO)
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(60.0)
        await stage.show(seen(stage.of, "a", EXITED))
        await asyncio.sleep(5.0)
        await stage.show(stage.runs(attempt=1))
        await asyncio.sleep(25.0)

    stage = play(pod(probed(liveness=probe(LIVENESS))), scene)
    assert stage.times("liveness a-0") == [0.0, 10.0, 20.0]
    assert stage.times("liveness a-1") == [65.0, 75.0, 85.0]
    assert stage.probe_results == [(20.0, "liveness a-0", FAILURE), (85.0, "liveness a-1", FAILURE)]
    assert stage.events[0] == "Unhealthy spec.containers{a}: Liveness probe failed: it is ill"


def test_readiness_follows_its_answers_and_the_end_of_its_container() -> None:
    async def ill_for_a_while(at_s: float) -> ProbeOutcome:
        return NO if 20.0 <= at_s < 60.0 else YES

    async def scene(stage: Stage) -> None:
        stage.answers["readiness"] = ill_for_a_while
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(75.0)
        await stage.show(seen(stage.of, "a", EXITED))
        await asyncio.sleep(30.0)

    stage = play(pod(probed(readiness=probe(READINESS))), scene)
    assert [(at, result) for at, _, result in stage.probe_results] == [
        (0.0, SUCCESS),
        (40.0, FAILURE),
        (60.0, SUCCESS),
        (75.0, FAILURE),
    ]
    assert stage.times()[-1] == 70.0


def test_the_row_is_read_before_each_attempt_whether_or_not_somebody_calls() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(15.0)
        await stage.show(seen(stage.of, "a", EXITED), tell=False)
        await asyncio.sleep(30.0)

    stage = play(pod(probed(liveness=probe(LIVENESS))), scene)
    assert stage.times() == [0.0, 10.0]


def test_a_row_that_cannot_be_read_is_read_again() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin()
        await asyncio.sleep(3.5)
        await stage.show(stage.runs(), tell=False)
        await asyncio.sleep(1.0)

    assert play(pod(probed(liveness=probe(LIVENESS))), scene).times() == [4.0]


# --- errors ---


def test_what_could_not_be_carried_out_is_tried_three_times_and_not_counted() -> None:
    async def refused(at_s: float) -> ProbeOutcome:
        raise ProbeError("nobody makes a socket")

    async def scene(stage: Stage) -> None:
        stage.answers["liveness"] = refused
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(45.0)

    stage = play(pod(probed(liveness=probe(LIVENESS, failure_threshold=1))), scene)
    assert stage.times() == [at for at in (0.0, 10.0, 20.0, 30.0, 40.0) for _ in range(MAX_TRIES)]
    assert stage.probe_results == []
    message = "Liveness probe errored and resulted in unknown state: nobody makes a socket"
    assert stage.events == [f"Unhealthy spec.containers{{a}}: {message}"] * 5


def test_an_attempt_that_never_ends_is_given_up_and_is_an_error() -> None:
    async def hang(at_s: float) -> ProbeOutcome:
        await asyncio.Event().wait()
        raise AssertionError

    async def scene(stage: Stage) -> None:
        stage.answers["readiness"] = hang
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(21.0)

    stage = play(pod(probed(readiness=probe(READINESS))), scene)
    assert stage.times() == [0.0, 20.0], "one that takes longer than a period drops a tick"
    assert OVERTIME_S + 1.0 == 11.0
    message = "Readiness probe errored and resulted in unknown state: not carried out within 11 s"
    assert stage.events == [f"Unhealthy spec.containers{{a}}: {message}"]


def test_a_warning_is_a_success_that_is_told_and_long_output_is_cut() -> None:
    async def redirected(at_s: float) -> ProbeOutcome:
        return ProbeOutcome(Answer.WARNING, "x" * 5000)

    async def scene(stage: Stage) -> None:
        stage.answers["readiness"] = redirected
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(1.0)

    stage = play(pod(probed(readiness=probe(READINESS))), scene)
    assert [result for _, _, result in stage.probe_results] == [SUCCESS]
    [event] = stage.events
    assert event.startswith("ProbeWarning spec.containers{a}: Readiness probe warning: xxx")
    assert event.count("x") == MAX_OUTPUT_CHARS - 1


# --- startup ---


def test_startup_hands_over_in_the_moment_of_its_success_and_ends() -> None:
    async def after_25_s(at_s: float) -> ProbeOutcome:
        return YES if at_s >= 25.0 else NO

    async def scene(stage: Stage) -> None:
        stage.answers["startup"] = after_25_s
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(60.0)

    of = pod(
        probed(
            startup=probe(STARTUP, failure_threshold=30),
            liveness=probe(LIVENESS, period_seconds=5),
            readiness=probe(READINESS, initial_delay_seconds=45),
        )
    )
    stage = play(of, scene)
    assert stage.times("startup") == [0.0, 10.0, 20.0, 30.0]
    assert stage.times("liveness") == [30.0, 35.0, 40.0, 45.0, 50.0, 55.0]
    assert stage.times("readiness") == [45.0, 55.0]
    assert stage.probe_results == [(30.0, "startup a-0", SUCCESS), (45.0, "readiness a-0", SUCCESS)]


def test_a_startup_that_fails_keeps_the_others_back_and_every_container_has_its_own() -> None:
    async def scene(stage: Stage) -> None:
        stage.answers["startup"] = said(NO)
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(30.0)
        stage.answers["startup"] = said(YES)
        await stage.show(stage.runs(attempt=1))
        await asyncio.sleep(1.0)

    of = pod(probed(startup=probe(STARTUP, period_seconds=1), liveness=probe(LIVENESS)))
    stage = play(of, scene)
    assert stage.attempts == [
        (0.0, "startup a-0"),
        (1.0, "startup a-0"),
        (2.0, "startup a-0"),
        (30.0, "startup a-1"),
        (30.0, "liveness a-1"),
    ]


# --- restarts ---


@pytest.mark.parametrize("seed", range(20))
def test_after_a_restart_what_runs_is_probed_at_a_random_moment_of_its_period(seed: int) -> None:
    async def scene(stage: Stage) -> None:
        await stage.show(stage.runs(for_s=100.0), tell=False)
        await stage.begin(probe_results={"a-0": ProbeResults(readiness=SUCCESS)})
        await asyncio.sleep(20.0)

    stage = play(pod(probed(readiness=probe(READINESS))), scene, seed=seed)
    [first, second] = stage.times()
    assert 0.0 < first < 10.0
    assert second == pytest.approx(first + 10.0, abs=0.002)
    assert stage.probe_results == [], "it was ready and is"


def test_moments_after_a_restart_are_spread() -> None:
    firsts = []
    for seed in range(10):

        async def scene(stage: Stage) -> None:
            await stage.show(stage.runs(for_s=100.0), tell=False)
            await stage.begin()
            await asyncio.sleep(10.0)

        firsts.append(play(pod(probed(readiness=probe(READINESS))), scene, seed=seed).times()[0])
    assert max(firsts) - min(firsts) > 5.0


def test_the_next_worker_goes_on_from_what_the_last_one_said() -> None:
    async def scene(stage: Stage) -> None:
        stage.answers = {"liveness": said(NO), "readiness": said(NO)}
        await stage.show(stage.runs(for_s=100.0), tell=False)
        known = ProbeResults(startup=SUCCESS, liveness=FAILURE, readiness=SUCCESS)
        await stage.begin(probe_results={"a-0": known})
        await asyncio.sleep(60.0)

    of = pod(probed(startup=probe(STARTUP), liveness=probe(LIVENESS), readiness=probe(READINESS)))
    stage = play(of, scene)
    assert stage.times("startup") == stage.times("liveness") == []
    [(told_at, _, result)] = stage.probe_results
    assert (told_at, result) == (stage.times("readiness")[2], FAILURE), "three failures make it unready, as ever"


def test_a_container_that_is_seen_before_its_results_come_goes_on_from_them() -> None:
    """A new worker reads on the board what runs; what an agent before this one knew of it comes a moment later."""

    async def scene(stage: Stage) -> None:
        await stage.begin(probe_results={})
        await stage.show(stage.runs(for_s=60.0), tell=False)
        await asyncio.sleep(1.5 * UNREADABLE_RETRY_S)
        known = {"a-0": ProbeResults(readiness=SUCCESS)}
        await stage.prober.containers_changed(ContainersChanged(uid=UID, probe_results=known))
        await asyncio.sleep(60.0)

    stage = play(pod(probed(readiness=probe(READINESS))), scene)
    assert stage.times("readiness") != []
    assert stage.probe_results == [], "it was ready all the time"


def test_a_verdict_that_the_master_does_not_know_is_said_again() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(1.0)
        known = {"a-0": ProbeResults(readiness=SUCCESS)}
        await stage.prober.containers_changed(ContainersChanged(uid=UID, probe_results=known))
        assert len(stage.probe_results) == 1
        await stage.prober.containers_changed(ContainersChanged(uid=UID))

    stage = play(pod(probed(readiness=probe(READINESS))), scene)
    assert stage.probe_results == [(0.0, "readiness a-0", SUCCESS), (1.0, "readiness a-0", SUCCESS)]


# --- edits and ends ---


def test_an_edit_changes_only_the_probes_that_it_names() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(4.0)
        stage.of = pod(probed(liveness=probe(LIVENESS), readiness=probe(READINESS, period_seconds=2)), hostname="b")
        await stage.begin()
        await asyncio.sleep(16.5)

    stage = play(pod(probed(liveness=probe(LIVENESS), readiness=probe(READINESS))), scene)
    assert stage.times("liveness") == [0.0, 10.0, 20.0]
    later = [at for at in stage.times("readiness") if at > 4.0]
    assert len(later) == 9
    assert later[0] < 6.0
    assert stage.probe_results == [(0.0, "readiness a-0", SUCCESS)], "it was ready and is"


def test_while_a_pod_goes_down_only_readiness_is_probed() -> None:
    async def scene(stage: Stage) -> None:
        stage.answers = {"startup": said(NO), "readiness": said(YES)}
        await stage.begin()
        await stage.show(stage.runs("a"), stage.runs("b"))
        await asyncio.sleep(5.0)
        await stage.begin(terminating=True)
        await asyncio.sleep(20.0)

    of = pod(
        probed("a", startup=probe(STARTUP, period_seconds=4)),
        probed("b", liveness=probe(LIVENESS), readiness=probe(READINESS)),
    )
    stage = play(of, scene)
    assert stage.times("startup") == [0.0, 4.0]
    assert stage.times("liveness") == [0.0]
    assert stage.times("readiness") == [0.0, 10.0, 20.0]
    assert stage.probe_results[-1] == (5.0, "startup a-0", SUCCESS)


def test_a_stop_is_answered_when_the_attempt_in_hand_is_broken_off() -> None:
    async def clean_up_for_two_seconds(at_s: float) -> ProbeOutcome:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(2.0)
        raise AssertionError

    async def scene(stage: Stage) -> None:
        stage.answers["readiness"] = clean_up_for_two_seconds
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(0.5)
        stage.prober.stop(UID)
        await asyncio.sleep(30.0)

    stage = play(pod(probed(readiness=probe(READINESS))), scene)
    assert stage.stopped == [2.5]
    assert stage.times() == [0.0]


def test_a_pod_that_nobody_probes_is_stopped_at_once() -> None:
    async def scene(stage: Stage) -> None:
        stage.prober.stop(UID)
        await asyncio.sleep(0.1)

    assert play(pod(), scene).stopped == [0.0]


def test_sidecars_are_probed_and_plain_init_containers_have_nothing_to_probe() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin()
        await stage.show(stage.runs("side"), stage.runs("setup"), stage.runs("a"))
        await asyncio.sleep(1.0)

    sidecar = msgspec.structs.replace(probed("side", readiness=probe(READINESS)), restart_policy="Always")
    stage = play(pod("a", init_containers=(container("setup"), sidecar)), scene)
    assert stage.attempts == [(0.0, "readiness side-0")]
    assert stage.events == []


def test_a_view_without_a_row_comes_with_the_message() -> None:
    async def scene(stage: Stage) -> None:
        await stage.begin(row=-1, status=observed(stage.of))
        await asyncio.sleep(3.0)
        await stage.begin(row=-1, status=observed(stage.of, stage.runs()))
        await asyncio.sleep(1.0)

    assert play(pod(probed(readiness=probe(READINESS))), scene).times() == [3.0]


# --- what nobody expected ---


def broken(error: Exception, *, until_s: float = 1e9) -> Carried:
    """Raises what nobody expected, until then."""

    async def carried(at_s: float) -> ProbeOutcome:
        if at_s < until_s:
            raise error
        return YES

    return carried


def test_an_attempt_that_fails_as_nobody_expected_has_failed_by_threshold_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(stage: Stage) -> None:
        stage.answers["readiness"] = broken(ValueError("Exceeds the limit"), until_s=51.0)
        await stage.show(stage.runs(), tell=False)
        await stage.begin(probe_results={"main-0": ProbeResults(readiness=SUCCESS)})
        await asyncio.sleep(65.0)

    of = pod(probed(liveness=probe(LIVENESS), readiness=probe(READINESS)))
    stage = play(of, scene)
    assert "Unhealthy" in stage.events[0]
    assert "failed: unexpected ValueError" in stage.events[0]
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    assert [result for _, what, result in stage.probe_results if what.startswith("readiness")] == [SUCCESS]


def test_a_liveness_probe_that_fails_as_nobody_expected_kills_its_container() -> None:
    async def scene(stage: Stage) -> None:
        stage.answers["liveness"] = broken(RuntimeError("?"))
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(60.0)

    stage = play(pod(probed(liveness=probe(LIVENESS, failure_threshold=3))), scene)
    assert [result for _, _, result in stage.probe_results] == [FAILURE]
    assert len(stage.events) == 3


def test_words_without_an_encoding_are_told_with_one() -> None:
    async def scene(stage: Stage) -> None:
        stage.answers["liveness"] = said(ProbeOutcome(Answer.WARNING, "http://[\udcff"))
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(25.0)

    stage = play(pod(probed(liveness=probe(LIVENESS))), scene)
    assert len(stage.times()) == len(stage.events) == 3
    assert all("http://[\\udcff" in event for event in stage.events)


def test_a_prober_that_dies_outside_its_guard_begins_again_and_says_so() -> None:
    class Deaf(Stage):
        """A stage whose taker of reports fails at the first ones."""

        failures = 2

        async def _take(self, report: ProbeResultChanged | EventReport | ProbingStopped) -> None:
            if isinstance(report, EventReport) and "failed: it is ill" in report.message and self.failures:
                self.failures -= 1
                raise UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed")
            await super()._take(report)

    made: list[Deaf] = []

    async def main() -> None:
        stage = Deaf(pod(probed(liveness=probe(LIVENESS), readiness=probe(READINESS))))
        made.append(stage)
        stage.answers["liveness"] = said(NO)
        await stage.begin()
        await stage.show(stage.runs())
        await asyncio.sleep(65.0)
        await stage.prober.close()

    simulate(main)
    (stage,) = made
    assert len(stage.times("readiness")) == 7
    assert [result for _, what, result in stage.probe_results if what.startswith("liveness")] == [FAILURE]
    assert len([event for event in stage.events if "begins anew: UnicodeEncodeError" in event]) == 2
