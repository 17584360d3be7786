"""The worker pool: incarnations, restart intensity, hang detection."""

from __future__ import annotations

import math
import signal
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.link.messages.zygote import Exited
from ipc.link.wire.boot import EXIT_BOOT_ERROR, EXIT_IDLE, EXIT_RESPAWN, Role
from supervisor.processes.child_manager import AFTER_S
from supervisor.processes.scheduling import Scheduling
from supervisor.processes.worker_pool import (
    ABORT_WINDOW_S,
    CHECK_PERIOD_S,
    EARLY_DEATHS,
    FAILED_SPAWNS,
    STEADY_S,
    AwaitDemand,
    ChildSpec,
    GiveUp,
    KillChild,
    PoolCommand,
    RespawnLater,
    ShutDownChild,
    SlotState,
    SpawnChild,
    WorkerPool,
    too_many_deaths,
)

SPECS = (
    ChildSpec(0, Role.NODE_WORKER, "node"),
    ChildSpec(2, Role.EXEC, "podman", ("podman",), heartbeat=False),
    ChildSpec(3, Role.POD_WORKER, "pods-0"),
)


def make_pool(max_deaths: int = 3) -> WorkerPool:
    return WorkerPool(SPECS, heartbeat_timeout_s=10.0, max_deaths=max_deaths, period_s=60.0)


def exited(slot: int, incarnation: int, code: int = -9) -> Exited:
    return Exited(slot=slot, incarnation=incarnation, pid=100, exit_code=code)


def kills(commands: list[PoolCommand]) -> list[KillChild]:
    return [command for command in commands if isinstance(command, KillChild)]


def died(pool: WorkerPool, slot: int, incarnation: int, now: float) -> PoolCommand:
    """Commands that follow its death, the pause before it over."""
    (answer,) = pool.exited(exited(slot, incarnation), now)
    if isinstance(answer, RespawnLater):
        (answer,) = pool.respawn(slot, now + answer.after_s)
    return answer


def started_pool(max_deaths: int = 3) -> WorkerPool:
    pool = make_pool(max_deaths)
    pool.start(0.0)
    for spec in SPECS:
        pool.spawned(spec.slot, 1, 100 + spec.slot)
        if spec.heartbeat:
            pool.ready(spec.slot, 100 + spec.slot, 0.0)
    return pool


def test_start_asks_for_the_first_incarnation_of_every_slot() -> None:
    assert make_pool().start(0.0) == [SpawnChild(spec, 1) for spec in SPECS]


def test_a_slots_next_incarnation_follows_the_reaped_exit_of_the_one_before() -> None:
    pool = started_pool()
    assert pool.exited(exited(3, 1), 1.0) == [SpawnChild(SPECS[2], 2)]
    assert not pool.is_running(3)
    assert pool.exited(exited(3, 1), 1.0) == [], "an exit told twice starts nobody"


def test_a_child_that_cannot_boot_ends_the_agent_at_once() -> None:
    [command] = started_pool().exited(exited(3, 1, EXIT_BOOT_ERROR), 1.0)
    assert isinstance(command, GiveUp)
    assert "pods-0" in command.reason


def test_a_child_that_begins_anew_has_not_died() -> None:
    pool = started_pool(max_deaths=2)
    for incarnation in range(1, 9):
        after = pool.exited(exited(3, incarnation, EXIT_RESPAWN), float(incarnation))
        assert after == [SpawnChild(SPECS[2], incarnation + 1)]
    assert {info.name: info.deaths for info in pool.infos({})}["pods-0"] == 0


# --- children that are there on demand ---------------------------------------------------------------------------

ON_DEMAND = ChildSpec(1, Role.API_SERVER, "api", on_demand=True)


def idle_pool() -> WorkerPool:
    """A pool whose API server has left because nobody asked it anything."""
    pool = WorkerPool((*SPECS, ON_DEMAND), heartbeat_timeout_s=10.0, max_deaths=1, period_s=60.0)
    pool.start(0.0)
    for spec in (*SPECS, ON_DEMAND):
        pool.spawned(spec.slot, 1, 100 + spec.slot)
        if spec.heartbeat:
            pool.ready(spec.slot, 100 + spec.slot, 0.0)
    assert pool.exited(exited(1, 1, EXIT_IDLE), 1.0) == [AwaitDemand(1, Role.API_SERVER)]
    return pool


def test_an_idle_child_comes_back_when_somebody_connects_and_has_not_died() -> None:
    pool = idle_pool()
    for incarnation in range(2, 9):
        info = {info.name: info for info in pool.infos({})}["api"]
        assert (info.state, info.pid, info.deaths) == (SlotState.IDLE.value, 0, 0)
        assert pool.demanded(1, float(incarnation)) == [SpawnChild(ON_DEMAND, incarnation)]
        assert pool.demanded(1, float(incarnation)) == [], "one is enough"
        assert pool.exited(exited(1, incarnation, EXIT_IDLE), float(incarnation)) == [AwaitDemand(1, Role.API_SERVER)]


def test_nobody_misses_an_idle_child() -> None:
    """Neither its heartbeat, nor a configuration that is read anew."""
    pool = idle_pool()
    assert pool.check_heartbeats({0: (1, 1000.0), 3: (1, 1000.0)}, 1000.0) == []
    assert pool.declare((*SPECS, ON_DEMAND), 1000.0) == []
    assert pool.replace(1, "speaks nonsense") == []
    assert pool.age_s(1, 1000.0) == 0.0


def test_an_idle_child_is_restarted_by_hand_at_once() -> None:
    pool = idle_pool()
    assert pool.can_restart(1)
    assert pool.end(1, 2.0, 5.0) == [SpawnChild(ON_DEMAND, 2)]
    assert not pool.can_restart(1)


def test_an_idle_child_keeps_no_agent_from_ending_and_does_not_come_back_then() -> None:
    pool = idle_pool()
    assert {command.slot for command in kills(pool.stop(signal.SIGTERM))} == {0, 2, 3}
    for slot in (0, 2, 3):
        pool.exited(exited(slot, 1), 2.0)
    assert pool.all_gone()
    assert pool.demanded(1, 3.0) == []


def test_one_that_is_asked_to_leave_and_leaves_as_idle_has_a_successor() -> None:
    pool = idle_pool()
    pool.demanded(1, 2.0)
    pool.ready(1, 102, 2.0)
    pool.end(1, 3.0, 5.0)
    assert pool.exited(exited(1, 2, EXIT_IDLE), 4.0) == [SpawnChild(ON_DEMAND, 3)]


def test_one_that_dies_on_demand_is_replaced_as_any() -> None:
    pool = idle_pool()
    pool.demanded(1, 2.0)
    assert pool.exited(exited(1, 2), 3.0) == [SpawnChild(ON_DEMAND, 3)]


def test_one_that_cannot_be_made_is_tried_again_although_nobody_connects_any_more() -> None:
    pool = idle_pool()
    pool.demanded(1, 2.0)
    assert pool.spawn_failed(1, 2) == [RespawnLater(1, FAILED_SPAWNS.initial_s)]
    assert pool.respawn(1, 3.0) == [SpawnChild(ON_DEMAND, 3)]


def test_who_was_not_declared_so_may_not_be_idle() -> None:
    pool = idle_pool()
    assert pool.exited(exited(3, 1, EXIT_IDLE), 1.0) == [SpawnChild(SPECS[2], 2)]
    assert {info.name: info.deaths for info in pool.infos({})}["pods-0"] == 1


# --- deaths and hangs --------------------------------------------------------------------------------------------


def test_more_deaths_than_the_intensity_allows_end_the_agent() -> None:
    pool = started_pool(max_deaths=2)
    for incarnation in (1, 2):
        assert isinstance(died(pool, 3, incarnation, float(incarnation)), SpawnChild)
    assert isinstance(died(pool, 3, 3, 3.0), GiveUp)


def test_deaths_far_apart_are_forgiven() -> None:
    pool = started_pool(max_deaths=1)
    for incarnation in range(1, 6):
        [command] = pool.exited(exited(3, incarnation), incarnation * 100.0)
        assert isinstance(command, SpawnChild)


@given(deaths=st.lists(st.floats(0, 1000)), limit=st.integers(0, 20), period=st.floats(0.1, 100))
def test_intensity_counts_only_the_period(deaths: list[float], limit: int, period: float) -> None:
    recent = [death for death in deaths if 1000.0 - death <= period]
    assert too_many_deaths(deaths, 1000.0, limit, period) == (len(recent) > limit)


def test_a_silent_child_is_aborted_for_its_stack_and_then_killed() -> None:
    pool = started_pool()
    beats = {0: (1, 100.0), 3: (1, 5.0)}
    [abort] = kills(pool.check_heartbeats(beats, 100.0))
    assert (abort.slot, abort.signum) == (3, signal.SIGABRT)
    assert pool.check_heartbeats(beats, 100.0 + ABORT_WINDOW_S / 2) == []
    [kill] = kills(pool.check_heartbeats(beats, 100.0 + ABORT_WINDOW_S * 1.5))
    assert (kill.slot, kill.signum) == (3, signal.SIGKILL)


SILENT: Final = {0: (1, 200.0), 3: (1, 100.0)}
"""Heartbeats at second 100 of the pod worker, and later of the node worker."""


def hung_at(state: str, waited_share: float) -> float | None:
    """Second at which a pod worker that is silent from second 100 on is aborted, if it is before second 200."""
    pool = started_pool()
    pool.spawned(3, 1, 33)
    for second in range(100, 200):
        look = Scheduling(state, max(0.0, second - 100) * waited_share)
        commands = pool.check_heartbeats(SILENT, float(second), {3: look})
        if any(kill.signum == signal.SIGABRT for kill in kills(commands)):
            return second - 100
    return None


@pytest.mark.parametrize(
    ("state", "waited_share", "hangs_after_s"),
    [
        ("S", 0.0, 11),
        ("R", 0.0, 11),
        ("R", 0.5, 21),  # as long as it has run, it has waited for a CPU
        ("R", 1.0, None),
        ("D", 0.0, None),  # a disk
        ("T", 0.0, 11),  # it is continued each time and stopped again
        ("t", 0.0, 11),  # a debugger
    ],
)
def test_a_child_that_could_not_run_does_not_hang(state: str, waited_share: float, hangs_after_s: float | None) -> None:
    assert hung_at(state, waited_share) == hangs_after_s


def test_time_in_which_the_master_did_not_run_is_nobodys_silence() -> None:
    pool = started_pool()
    assert pool.check_heartbeats({0: (1, 99.5), 3: (1, 99.5)}, 100.0) == []
    assert pool.check_heartbeats({0: (1, 99.5), 3: (1, 100.5)}, 160.0) == [], "the whole host stood still"
    assert pool.check_heartbeats({0: (1, 160.5), 3: (1, 100.5)}, 161.0) == []
    late = [pool.check_heartbeats({0: (1, now), 3: (1, 100.5)}, now) for now in map(float, range(162, 175))]
    assert [(kill.slot, kill.signum) for commands in late for kill in kills(commands)][:1] == [(3, signal.SIGABRT)]


def test_silent_children_and_those_without_heartbeats_are_looked_at() -> None:
    pool = started_pool()
    for slot, pid in ((0, 10), (2, 12), (3, 13)):
        pool.spawned(slot, 1, pid)
    assert pool.suspects({0: (1, 100.0), 3: (1, 94.0)}, 101.0) == {2: 12, 3: 13}
    assert pool.suspects({0: (1, 100.0), 3: (1, 100.0)}, 101.0) == {2: 12}
    pool.exited(exited(2, 1), 101.0)
    assert 2 not in pool.suspects({}, 101.0)


def test_a_check_comes_when_a_silent_child_will_have_hung_and_when_an_aborted_one_has_had_its_time() -> None:
    pool = started_pool()
    pool.spawned(3, 1, 13)
    assert pool.next_check_s({0: (1, 95.5), 3: (1, 95.5)}, 96.0) == math.inf, "nobody is silent"
    assert pool.next_check_s({0: (1, 105.0), 3: (1, 95.5)}, 105.0) == 0.5
    assert kills(pool.check_heartbeats({0: (1, 105.6), 3: (1, 95.5)}, 105.6)) != []
    assert pool.next_check_s({0: (1, 106.0), 3: (1, 95.5)}, 106.0) == pytest.approx(ABORT_WINDOW_S - 0.4)
    assert pool.next_check_s({0: (1, 107.0), 3: (1, 95.5)}, 107.0) == math.inf, "its time is over"


def test_checks_that_come_a_little_late_abort_a_hung_child_no_second_later() -> None:
    """The time they are late by is excused, and the check that is due then counts it."""
    pool, now, period_s = started_pool(), 100.0, CHECK_PERIOD_S + 0.05
    silent = {0: (1, 200.0), 3: (1, now)}
    while (due_s := pool.next_check_s(silent, now)) > period_s:
        now += period_s
        assert kills(pool.check_heartbeats(silent, now, {3: Scheduling("S", 0.0)})) == []
    [abort] = kills(pool.check_heartbeats(silent, now + due_s + AFTER_S, {3: Scheduling("S", 0.0)}))
    assert (abort.slot, abort.signum) == (3, signal.SIGABRT)


def test_whatever_was_stopped_is_continued() -> None:
    pool = started_pool()
    stopped = {slot: Scheduling("T", 0.0) for slot in (2, 3)}
    commands = pool.check_heartbeats({0: (1, 100.0), 3: (1, 99.0)}, 100.0, stopped)
    assert [(kill.slot, kill.signum) for kill in kills(commands)] == [(2, signal.SIGCONT), (3, signal.SIGCONT)]


def test_the_heartbeat_of_a_former_incarnation_counts_for_nothing() -> None:
    pool = started_pool()
    pool.exited(exited(3, 1), 1.0)
    commands = pool.check_heartbeats({0: (1, 100.0), 3: (1, 100.0)}, 100.0)
    assert [(c.slot, c.incarnation) for c in kills(commands)] == [(3, 2)]


def test_a_row_that_cannot_be_read_is_not_a_missing_heartbeat() -> None:
    pool = started_pool()
    assert pool.check_heartbeats({0: (1, 100.0), 3: (1, 100.0)}, 100.0) == []
    assert pool.check_heartbeats({}, 105.0) == []


@pytest.mark.parametrize("spare", [None, 2])
def test_stop_spares_the_slot_that_serves_the_others_and_restarts_nobody(spare: int | None) -> None:
    pool = started_pool()
    signalled = {command.slot for command in kills(pool.stop(signal.SIGTERM, spare))}
    assert signalled == {0, 2, 3} - {spare}
    for slot in (0, 3):
        assert pool.exited(exited(slot, 1), 1.0) == []
    assert pool.all_gone(spare) == (spare == 2)


def test_infos_tell_state_and_deaths() -> None:
    pool = started_pool()
    pool.exited(exited(3, 1), 1.0)
    info = {info.name: info for info in pool.infos({3: 7})}
    assert (info["pods-0"].deaths, info["pods-0"].incarnation, info["pods-0"].pods) == (1, 2, 7)
    assert info["pods-0"].state == SlotState.STARTING.value
    assert info["podman"].role == "podman-service"


# --- children that are asked to leave ----------------------------------------------------------------------------

GRACE_S = 5.0
MORE = (*SPECS, ChildSpec(4, Role.POD_WORKER, "pods-1"))


def states(pool: WorkerPool) -> dict[str, str]:
    return {info.name: info.state for info in pool.infos({})}


def test_a_child_that_leaves_when_it_is_asked_is_followed_by_the_next_and_has_not_died() -> None:
    pool = started_pool(max_deaths=0)
    assert pool.end(3, 10.0, GRACE_S) == [ShutDownChild(3, 1)]
    assert pool.is_leaving(3)
    assert states(pool)["pods-0"] == "Stopping"
    assert pool.end(3, 11.0, GRACE_S) == [], "asked already"
    assert pool.exited(exited(3, 1, 0), 12.0) == [SpawnChild(SPECS[2], 2)]
    assert [info.deaths for info in pool.infos({})] == [0, 0, 0]


def test_a_child_that_does_not_leave_is_killed_and_has_not_died_either() -> None:
    pool = started_pool(max_deaths=0)
    pool.end(3, 10.0, GRACE_S)
    beats = {0: (1, 20.0), 3: (1, 20.0)}
    assert pool.check_heartbeats(beats, 10.0 + GRACE_S) == []
    [kill] = kills(pool.check_heartbeats(beats, 10.5 + GRACE_S))
    assert (kill.slot, kill.signum) == (3, signal.SIGKILL)
    assert pool.exited(exited(3, 1), 16.0) == [SpawnChild(SPECS[2], 2)]
    assert kills(pool.check_heartbeats({0: (1, 20.0)}, 20.0)) == [], "not its successor"


def test_a_child_may_speak_before_the_zygote_does() -> None:
    pool = make_pool()
    pool.start(0.0)
    pool.ready(3, 103, 1.0)
    assert {info.slot: info.pid for info in pool.infos({})}[3] == 103


def test_a_child_that_is_asked_to_leave_before_it_was_ready_stays_asked() -> None:
    pool = make_pool(max_deaths=0)
    pool.start(0.0)
    pool.end(3, 0.5, GRACE_S)
    pool.spawned(3, 1, 100)
    pool.ready(3, 103, 1.0)
    assert (pool.is_running(3), pool.is_leaving(3)) == (False, True)
    assert pool.exited(exited(3, 1, 0), 2.0) == [SpawnChild(SPECS[2], 2)]


def test_a_program_without_a_link_is_asked_by_a_signal() -> None:
    [term] = kills(started_pool().end(2, 10.0, GRACE_S))
    assert (term.slot, term.signum) == (2, signal.SIGTERM)


def test_a_death_that_is_explained_does_not_count_against_the_agent_but_is_told() -> None:
    pool = started_pool(max_deaths=1)
    for incarnation in range(1, 6):
        pool.explain(3)
        assert died(pool, 3, incarnation, 1.0) == SpawnChild(SPECS[2], incarnation + 1)
    assert isinstance(died(pool, 3, 6, 1.0), SpawnChild)
    assert isinstance(died(pool, 3, 7, 1.0), GiveUp)
    assert {info.name: info.deaths for info in pool.infos({})}["pods-0"] == 7


# --- another set of children -------------------------------------------------------------------------------------


def test_a_child_that_is_declared_anew_starts_and_the_others_do_not_notice() -> None:
    pool = started_pool()
    assert pool.declare(MORE, 10.0) == [SpawnChild(MORE[3], 1)]
    assert pool.declare(MORE, 11.0) == []
    assert pool.slot_named("pods-1") == 4
    assert pool.slots() == (0, 2, 3, 4)


def test_a_child_that_is_left_out_goes_on_until_it_has_nothing_to_do() -> None:
    pool = started_pool()
    assert pool.declare(SPECS[:2], 10.0) == []
    assert states(pool)["pods-0"] == "Draining"
    [spawn] = pool.exited(exited(3, 1), 11.0)
    assert spawn == SpawnChild(SPECS[2], 2), "it has pods"
    assert pool.retire(3, 12.0, GRACE_S) == [ShutDownChild(3, 2)]
    assert pool.exited(exited(3, 2, 0), 13.0) == []
    assert "pods-0" not in states(pool)
    assert pool.slots() == (0, 2)
    assert pool.slot_named("pods-0") is None


def test_a_slot_that_is_taken_again_never_has_an_incarnation_twice() -> None:
    pool = started_pool()
    pool.declare(SPECS[:2], 10.0)
    pool.retire(3, 11.0, GRACE_S)
    pool.exited(exited(3, 1, 0), 12.0)
    assert pool.declare(SPECS, 13.0) == [SpawnChild(SPECS[2], 2)]


def test_a_child_that_is_wanted_again_while_it_leaves_is_followed_by_the_next() -> None:
    pool = started_pool()
    pool.declare(SPECS[:2], 10.0)
    pool.retire(3, 11.0, GRACE_S)
    assert pool.declare(SPECS, 11.5) == []
    assert pool.exited(exited(3, 1, 0), 12.0) == [SpawnChild(SPECS[2], 2)]


def test_a_child_that_is_asked_to_leave_and_then_left_out_is_not_followed_once_it_is_retired() -> None:
    pool = started_pool()
    pool.end(3, 10.0, GRACE_S)
    pool.declare(SPECS[:2], 10.5)
    assert pool.retire(3, 11.0, GRACE_S) == []
    assert pool.exited(exited(3, 1, 0), 12.0) == []


# --- what does not live for long ---------------------------------------------------------------------------------


def test_children_that_die_young_come_after_a_pause_that_doubles_and_is_bounded() -> None:
    pool, now, pauses = started_pool(max_deaths=1000), 0.0, []
    for incarnation in range(1, 12):
        (answer,) = pool.exited(exited(3, incarnation), now)
        if isinstance(answer, RespawnLater):
            pauses.append(answer.after_s)
            now += answer.after_s
            (answer,) = pool.respawn(3, now)
        assert answer == SpawnChild(SPECS[2], incarnation + 1)
    assert pauses[:3] == [0.1, 0.2, 0.4], "but for the first"
    assert pauses[-1] == EARLY_DEATHS.max_s
    assert pool.exited(exited(3, 12), now + EARLY_DEATHS.max_s + STEADY_S) == [SpawnChild(SPECS[2], 13)], "it has lived"


def test_one_that_cannot_be_made_is_tried_again_for_ever_and_ends_no_agent() -> None:
    pool, now = started_pool(max_deaths=1), 100.0
    assert pool.exited(exited(3, 1), now) == [SpawnChild(SPECS[2], 2)]
    for incarnation in range(2, 100):
        (later,) = pool.spawn_failed(3, incarnation)
        assert isinstance(later, RespawnLater)
        assert FAILED_SPAWNS.initial_s <= later.after_s <= FAILED_SPAWNS.max_s
        now += later.after_s
        assert pool.respawn(3, now) == [SpawnChild(SPECS[2], incarnation + 1)]
    assert pool.spawn_failed(3, 7) == [], "long ago"
    pool.spawned(3, 100, 7)
    assert {info.name: info.deaths for info in pool.infos({})}["pods-0"] == 1


def test_nobody_comes_after_a_pause_that_is_not_wanted_any_more() -> None:
    pool = started_pool()
    pool.spawn_failed(3, 1)
    pool.declare(SPECS[:2], 1.0)
    pool.retire(3, 1.0, 1.0)
    assert pool.respawn(3, 2.0) == []
    assert pool.declare(SPECS, 3.0) == [SpawnChild(SPECS[2], 2)]
    assert pool.respawn(3, 4.0) == [], "somebody is there"
    pool.spawn_failed(3, 2)
    pool.stop(signal.SIGTERM)
    assert pool.respawn(3, 5.0) == []
    assert pool.spawn_failed(3, 2) == []
