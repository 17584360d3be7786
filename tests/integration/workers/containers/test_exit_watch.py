"""Ends, who says so, and what is believed when Podman says something else."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess

import msgspec
import pytest

from tests.fakes.clock import SimClock, simulated
from tests.support.open_files import open_files, open_files_before
from tests.support.runtime_values import inspected
from workers.containers.exit_watch import (
    CHECKS,
    MAX_FDS,
    PATIENCE_S,
    RECORD_HOLDS_S,
    RECORD_PAUSES_S,
    RECORD_WAIT_S,
    SETTLE_S,
    ExitWatch,
    raise_file_limit,
)
from workers.kubecontainer.runtime import ContainerProcess, InspectedContainer, RecordedEnd
from workers.proc.pidfd import open_pidfd

DEADLINE_S = 30.0


class Host:
    """Processes that are what their pid is, and monitors that live or not."""

    def __init__(self) -> None:
        self.monitored = True
        self.is_readable = True
        self.is_out_of_files = False
        self.record: RecordedEnd | None = None
        self.looks_for_records = 0

    def open_process(self, container: InspectedContainer) -> int | None:
        if self.is_out_of_files:
            raise OSError("too many open files")
        return open_pidfd(container.pid)

    def has_monitor(self, process: ContainerProcess) -> bool:
        return self.monitored

    def will_record(self, process: ContainerProcess) -> bool:
        return self.monitored and self.is_readable

    def recorded_end(self, process: ContainerProcess) -> RecordedEnd | None:
        self.looks_for_records += 1
        return self.record


class Watched:
    """A watch, and what it tells."""

    def __init__(self, max_watches: int | None = None, *, wants_notes: bool = False) -> None:
        self.clock = SimClock()
        self.host = Host()
        self.reported: asyncio.Queue[str] = asyncio.Queue()
        self.noted: asyncio.Queue[str] = asyncio.Queue()
        on_record = self.noted.put_nowait if wants_notes else None
        self.watch = ExitWatch(self.host, self.clock, self.reported.put_nowait, max_watches, on_record=on_record)

    async def next(self) -> str:
        async with asyncio.timeout(DEADLINE_S):
            return await self.reported.get()


async def test_the_pod_of_a_process_that_ended_is_told(sleeper: subprocess.Popen[bytes]) -> None:
    watched, container = Watched(), inspected("c1", pid=sleeper.pid)
    watch = watched.watch
    watch.watch(container, "u1")
    watch.watch(container, "u1")
    assert watch.is_running("c1", sleeper.pid)
    assert watch.is_alive("c1")
    assert not watch.is_running("c1", sleeper.pid + 1)
    assert not watch.is_running("c2", sleeper.pid)
    sleeper.kill()
    assert await watched.next() == "u1"
    assert not watch.is_running("c1", sleeper.pid)
    assert not watch.is_alive("c1")
    watch.close()


async def test_what_is_forgotten_is_not_told(sleeper: subprocess.Popen[bytes]) -> None:
    watched = Watched()
    watched.watch.watch(inspected("c1", pid=sleeper.pid), "u1")
    watched.watch.forget("c1")
    watched.watch.watch(inspected("c2", pid=sleeper.pid), "u2")
    watched.watch.retain({"c3"})
    watched.watch.watch(inspected("c3", pid=sleeper.pid), "u3")
    sleeper.kill()
    assert await watched.next() == "u3"
    assert watched.reported.empty()
    watched.watch.close()


async def test_descriptors_are_bounded_and_given_back_and_the_rest_is_known(sleeper: subprocess.Popen[bytes]) -> None:
    before = open_files_before()
    watch = Watched(max_watches=3).watch
    for number in range(10):
        watch.watch(inspected(f"c{number}", pid=sleeper.pid), "u1")
    assert open_files() == before + 3
    assert [watch.is_running(f"c{number}", sleeper.pid) for number in range(4)] == [True, True, True, False]
    assert watch.unwatched == {f"c{number}" for number in range(3, 10)}
    watch.forget("c0")
    watch.watch(inspected("c9", pid=sleeper.pid), "u1")
    assert watch.is_running("c9", sleeper.pid)
    assert "c9" not in watch.unwatched
    watch.close()
    assert not watch.unwatched
    assert open_files() == before


async def test_beyond_the_maximum_a_glance_still_finds_an_end(sleeper: subprocess.Popen[bytes]) -> None:
    watched = Watched(max_watches=0)
    watched.watch.watch(inspected("c1", pid=sleeper.pid), "u1")
    assert watched.reported.empty()
    sleeper.kill()
    sleeper.wait()
    watched.watch.watch(inspected("c1", pid=sleeper.pid), "u1")
    assert await watched.next() == "u1"
    assert not watched.watch.unwatched
    watched.watch.close()


async def test_without_any_file_descriptor_nothing_is_claimed() -> None:
    watched = Watched()
    watched.host.is_out_of_files = True
    watched.watch.watch(inspected("c1", pid=5), "u1")
    assert not watched.watch.is_running("c1", 5)
    assert watched.watch.end_of("c1", 5) is None
    assert watched.watch.unwatched == {"c1"}


GONE = inspected("c1", pid=2**22 + 1)
"""No process has that pid."""


@simulated
async def test_what_the_monitor_has_noted_is_told_instead_of_the_need_to_look() -> None:
    watched, record = Watched(wants_notes=True), RecordedEnd(exit_code=3, finished_at=5.0)
    watched.watch.watch(GONE, "u1")
    await asyncio.sleep(RECORD_PAUSES_S[0] * 1.5)
    assert watched.noted.empty()
    watched.host.record = record
    assert await watched.noted.get() == "u1"
    assert watched.watch.record_of("c1", GONE.pid) == record
    assert watched.watch.record_of("c1", GONE.pid + 1) is None
    observation_requests = watched.host.looks_for_records
    await asyncio.sleep(10)
    assert (watched.host.looks_for_records, watched.reported.empty()) == (observation_requests, True)
    assert watched.watch.unconfirmed == {"c1"}, "Podman is to be asked, too"
    watched.watch.forget("c1")
    assert watched.watch.record_of("c1", GONE.pid) is None


@simulated
async def test_a_monitor_that_lives_is_waited_for_on_a_busy_host_instead_of_asking_podman() -> None:
    watched = Watched(wants_notes=True)
    watched.watch.watch(GONE, "u1")
    await asyncio.sleep(RECORD_WAIT_S / 2)
    assert (watched.noted.empty(), watched.reported.empty()) == (True, True)
    watched.host.record = RecordedEnd(exit_code=3, finished_at=5.0)
    assert await watched.noted.get() == "u1"
    assert watched.reported.empty()


@simulated
async def test_a_monitor_that_records_nothing_is_not_waited_for_for_ever() -> None:
    watched = Watched(wants_notes=True)
    began = watched.clock.now().mono
    watched.watch.watch(GONE, "u1")
    assert await watched.next() == "u1"
    assert watched.clock.now().mono - began == pytest.approx(RECORD_WAIT_S, abs=2 * RECORD_PAUSES_S[-1])


@simulated
async def test_without_a_note_podman_is_asked_and_that_is_soon() -> None:
    for attribute in ("monitored", "is_readable"):
        watched = Watched(wants_notes=True)
        setattr(watched.host, attribute, False)
        began = watched.clock.now().mono
        watched.watch.watch(GONE, "u1")
        assert await watched.next() == "u1"
        assert watched.clock.now().mono - began == pytest.approx(sum(RECORD_PAUSES_S))
        assert watched.host.looks_for_records == len(RECORD_PAUSES_S)
        assert watched.noted.empty()


@simulated
async def test_what_was_looked_at_meanwhile_needs_no_note() -> None:
    watched = Watched(wants_notes=True)
    watched.watch.watch(GONE, "u1")
    watched.watch.forget("c1")
    await asyncio.sleep(1)
    assert (watched.host.looks_for_records, watched.reported.empty(), watched.noted.empty()) == (0, True, True)


@simulated
async def test_the_recorded_end_of_an_infra_container_is_told_by_an_observation() -> None:
    watched = Watched(wants_notes=True)
    watched.host.record = RecordedEnd(exit_code=0, finished_at=5.0)
    watched.watch.watch(msgspec.structs.replace(GONE, is_infra=True), "u1")
    assert await watched.next() == "u1"
    assert (watched.host.looks_for_records, watched.noted.empty()) == (1, True)


@simulated
async def test_a_record_stands_for_podmans_word_for_a_while() -> None:
    watched = Watched(wants_notes=True)
    watched.watch.watch(GONE, "u1")
    assert not watched.watch.is_reported("c1"), "nothing is recorded yet"
    watched.host.record = RecordedEnd(exit_code=3, finished_at=5.0)
    assert watched.watch.is_reported("c1"), "who asks does not wait for the next look"
    assert watched.watch.record_of("c1", GONE.pid) == watched.host.record
    assert watched.watch.unconfirmed == {"c1"}
    await asyncio.sleep(2 * RECORD_HOLDS_S)
    assert not watched.watch.is_reported("c1")
    assert not watched.watch.is_reported("c2")


@simulated
async def test_a_dead_monitor_has_told_podman_nothing() -> None:
    watched = Watched()
    watched.host.monitored = False
    began = watched.clock.now()
    watched.watch.watch(GONE, "u1")
    # Podman was asked before it was known that the monitor is dead: that says nothing yet.
    assert watched.watch.end_of("c1", GONE.pid) is None
    assert await watched.next() == "u1"
    watched.watch.watch(GONE, "u1")
    assert watched.watch.end_of("c1", GONE.pid) == pytest.approx(began.wall)
    assert watched.watch.end_of("c1", GONE.pid + 1) is None
    assert watched.clock.now().mono - began.mono < 2 * SETTLE_S
    await asyncio.sleep(100)
    assert watched.reported.empty()


@simulated
async def test_a_monitor_that_lives_has_its_time_and_no_more() -> None:
    watched = Watched()
    began, observation_requests = watched.clock.now(), []
    while watched.watch.end_of("c1", GONE.pid) is None:
        watched.watch.watch(GONE, "u1")
        if watched.watch.end_of("c1", GONE.pid) is None:
            assert await watched.next() == "u1"
            observation_requests.append(watched.clock.now().mono - began.mono)
    took_s = watched.clock.now().mono - began.mono
    assert PATIENCE_S <= took_s <= PATIENCE_S + CHECKS.max_s
    pauses = [
        later - earlier for earlier, later in zip([0.0, *observation_requests], observation_requests, strict=False)
    ]
    assert pauses == sorted(pauses)
    assert len(observation_requests) < 15
    watched.watch.watch(GONE, "u1")
    assert watched.watch.end_of("c1", GONE.pid) == pytest.approx(began.wall)


@simulated
async def test_a_monitor_that_dies_over_it_is_waited_for_once_more() -> None:
    watched = Watched()
    watched.watch.watch(GONE, "u1")
    await watched.next()
    watched.host.monitored = False
    watched.watch.watch(GONE, "u1")
    assert watched.watch.end_of("c1", GONE.pid) is None  # it may have told Podman and gone
    await watched.next()
    watched.watch.watch(GONE, "u1")
    assert watched.watch.end_of("c1", GONE.pid) is not None


@simulated
async def test_another_run_of_the_container_begins_anew() -> None:
    watched = Watched()
    watched.host.monitored = False
    for _ in range(2):
        watched.watch.watch(GONE, "u1")
        await watched.next() if watched.watch.end_of("c1", GONE.pid) is None else None
    assert watched.watch.end_of("c1", GONE.pid) is not None
    watched.watch.watch(inspected("c1", pid=os.getpid()), "u1")
    assert watched.watch.end_of("c1", GONE.pid) is None
    assert watched.watch.is_running("c1", os.getpid())
    watched.watch.forget("c1")
    assert watched.watch.end_of("c1", os.getpid()) is None


def test_the_soft_limit_of_files_is_raised_up_to_the_hard_one() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = before[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
        raise_file_limit()
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert soft == (MAX_FDS if hard == resource.RLIM_INFINITY else min(hard, MAX_FDS))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
