"""Quiet pods: nothing has happened to them for so long."""

from __future__ import annotations

from supervisor.pods.parts import KnownPods
from supervisor.pods.record import PodRecord
from supervisor.pods.sharding import WorkerLimits
from supervisor.pods.table import PodTable

AFTER_S = 10.0


def with_pods(*uids: str) -> PodTable:
    table = PodTable(WorkerLimits(1, quiet_after_s=AFTER_S), len(uids), lambda _: True, KnownPods())
    for uid in uids:
        table.begin(uid, f"default/{uid}", None, "file")
    return table


def of(table: PodTable, uid: str) -> PodRecord:
    state = table.get(uid)
    assert state is not None
    return state


def quiet_at(table: PodTable, now: float) -> set[str]:
    """UIDs of the pods that are quiet after the tick at that time."""
    table.fit_workers(now)
    return {state.uid for state in table if state.is_quiet}


def test_a_pod_is_quiet_when_nothing_has_happened_to_it_for_so_long() -> None:
    table = with_pods("a")
    assert [quiet_at(table, now) for now in (100.0, 109.9, 110.0, 200.0)] == [set(), set(), {"a"}, {"a"}]


def test_what_happens_meanwhile_puts_it_off() -> None:
    table = with_pods("a", "b")
    quiet_at(table, 100.0)
    table.note_activity(of(table, "a"))
    quiet_at(table, 105.0)
    assert (quiet_at(table, 110.0), quiet_at(table, 115.0)) == ({"b"}, {"a", "b"})


def test_a_quiet_pod_to_which_something_happens_is_so_no_more() -> None:
    table = with_pods("a")
    assert [quiet_at(table, now) for now in (100.0, 110.0)] == [set(), {"a"}]
    table.note_activity(of(table, "a"))
    assert [quiet_at(table, now) for now in (111.0, 120.9, 121.0)] == [set(), set(), {"a"}]


def test_a_sync_in_flight_is_something_that_happens() -> None:
    table = with_pods("a")
    quiet_at(table, 100.0)
    of(table, "a").lifecycle.dispatched(2, 1)
    assert [quiet_at(table, now) for now in (110.0, 119.0)] == [set(), set()]


def test_a_pod_that_is_gone_becomes_quiet_no_more() -> None:
    table = with_pods("a", "b")
    quiet_at(table, 100.0)
    table.end(of(table, "a"))
    table.begin("a", "default/a", None, "file")
    assert quiet_at(table, 110.0) == {"b"}, "the next pod of that UID is as old as itself"
