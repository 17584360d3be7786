"""Pods that kill their worker: tables of deaths, in whose step and with which pods in flight, and a worker that one pod
kills."""

from __future__ import annotations

import random

import pytest

from supervisor.pods.crash_attribution import (
    BACK_OFF,
    CRASH_THRESHOLD,
    MEMORY_S,
    PROBATION_S,
    Attribution,
    CrashAttribution,
)
from supervisor.pods.parts import KnownPods

SLOT, SOLO_S = 3, 20.0
SHARD = frozenset("abcdef")


def may_sync(attribution: CrashAttribution, slot: int, uid: str, now: float) -> bool:
    return attribution.isolated_until(uid, now) is None and not attribution.awaits_solo_sync(slot, uid)


def deaths(*in_flight: str, known: KnownPods | None = None) -> tuple[CrashAttribution, list[str]]:
    """Deaths ten seconds apart, each with these pods in flight; and who was isolated at each."""
    attribution = CrashAttribution(SOLO_S, known or KnownPods())
    isolated = []
    for number, uids in enumerate(in_flight):
        verdict = attribution.worker_died(SLOT, tuple(uids), SHARD.difference(uids), 10.0 * number)
        isolated.append(verdict.uid if verdict else "")
    return attribution, isolated


@pytest.mark.parametrize(
    ("in_flight", "isolated"),
    [
        (("a",), [""]),
        (("a", "a"), ["", "a"]),
        (("ab", "ac"), ["", "a"]),
        (("ab", "abc"), ["", ""]),
        (("ab", "ab", "a"), ["", "", "a"]),
        (("a", "b", "c", "d"), [""] * 4),
        (("a", "b", "a", "b", "a", "b"), [""] * 6),
        (("a", "", "a"), [""] * 3),
        (("", "", ""), [""] * 3),
        (("ab", "a"), ["", "a"]),
        (("b", "a", "a"), ["", "", "a"]),
    ],
)
def test_who_was_in_flight_at_every_one_of_the_last_deaths_is_isolated_when_it_is_one(
    in_flight: tuple[str, ...], isolated: list[str]
) -> None:
    assert deaths(*in_flight)[1] == isolated


@pytest.mark.parametrize(
    ("steps", "isolated"),
    [
        ("a", [""]),
        ("aa", ["", "a"]),
        ("aaa", ["", "a", "a"]),
        ("abab", ["", "", "a", "b"]),
        ("a-a", ["", "", "a"]),
        ("a-----a", [""] * 6 + ["a"]),
        ("abc", ["", "", ""]),
    ],
)
@pytest.mark.parametrize("in_flight", ["", "f", "fa"])
def test_a_pod_in_whose_steps_workers_die_is_found_at_the_second_whoever_else_was_in_flight(
    in_flight: str, steps: str, isolated: list[str]
) -> None:
    """``-`` is a death in nobody's step, with nobody in flight."""
    attribution, found = CrashAttribution(SOLO_S, KnownPods()), []
    for number, step in enumerate(steps):
        flying = () if step == "-" else tuple(in_flight)
        current = None if step == "-" else step
        verdict = attribution.worker_died(SLOT, flying, SHARD.difference(flying), 10.0 * number, current=current)
        found.append(verdict.uid if verdict else "")
    assert found == isolated
    assert attribution.quarantined() == set(isolated) - {""}
    assert all(may_sync(attribution, SLOT, uid, 60.0) for uid in "f"), "nobody suspects who was only there"


def test_a_pod_that_was_in_flight_once_and_then_in_a_step_of_which_its_worker_died_is_found() -> None:
    attribution, _ = deaths("ab")
    verdict = attribution.worker_died(SLOT, (), SHARD, 10.0, current="b")
    assert verdict == Attribution("b", CRASH_THRESHOLD, BACK_OFF.initial_s)


def test_a_death_during_a_solo_sync_is_not_attributed_to_it_if_it_was_in_another_pod_s_step() -> None:
    attribution, _ = deaths("ab", "ab")
    attribution.dispatched(SLOT, "a", 20.0)
    assert attribution.worker_died(SLOT, ("a",), SHARD.difference("a"), 21.0, current="c") is None
    assert attribution.quarantined() == frozenset()
    attribution.dispatched(SLOT, "b", 22.0)
    assert may_sync(attribution, SLOT, "b", 22.0)
    assert not may_sync(attribution, SLOT, "a", 22.0), "it waits for its turn, as before"


def test_a_quarantined_pod_is_in_quarantine_until_an_hour_after_its_last_death() -> None:
    attribution, _ = deaths("a", "a")
    ends_at = 10.0 + BACK_OFF.initial_s + MEMORY_S
    for now in (10.0, 100.0, ends_at):
        attribution.expire(now)
        assert attribution.is_quarantined("a"), now
    attribution.expire(ends_at + 1.0)
    assert not attribution.is_quarantined("a")
    assert may_sync(attribution, SLOT, "a", ends_at + 1.0)


def test_a_quarantined_pod_with_another_manifest_is_tried_at_once_and_leaves_when_no_worker_has_died_for_a_while() -> (
    None
):
    attribution, _ = deaths("a", "a")
    assert attribution.isolated_until("a", 11.0)
    attribution.try_again("a", 11.0)
    assert not attribution.isolated_until("a", 11.0)
    assert attribution.attributed("a") == 0
    attribution.expire(11.0 + PROBATION_S)
    assert attribution.is_quarantined("a")
    attribution.expire(11.0 + PROBATION_S + SOLO_S + 1.0)
    assert not attribution.is_quarantined("a")


def test_a_quarantined_pod_whose_other_manifest_kills_too_stays() -> None:
    attribution, _ = deaths("a", "a")
    attribution.try_again("a", 11.0)
    verdict = attribution.worker_died(SLOT, (), ("a",), 12.0, current="a")
    assert verdict == Attribution("a", CRASH_THRESHOLD + 1, BACK_OFF.initial_s)
    attribution.expire(12.0 + PROBATION_S + SOLO_S + 1.0)
    assert attribution.is_quarantined("a")


def test_several_suspects_are_synced_one_at_a_time_and_the_others_are_left_alone() -> None:
    attribution, _ = deaths("abc", "abc")
    assert [uid for uid in "abcd" if may_sync(attribution, SLOT, uid, 30.0)] == ["a", "b", "c", "d"]
    attribution.dispatched(SLOT, "a", 30.0)
    assert [uid for uid in "abcd" if may_sync(attribution, SLOT, uid, 30.0)] == ["a", "d"]
    attribution.sync_completed(SLOT, "a")
    attribution.dispatched(SLOT, "b", 31.0)
    assert [uid for uid in "abcd" if may_sync(attribution, SLOT, uid, 31.0)] == ["a", "b", "d"]
    verdict = attribution.worker_died(SLOT, ("a", "b", "d"), SHARD.difference("abd"), 32.0)
    assert verdict is not None
    assert (verdict.uid, verdict.crashes, verdict.wait_s) == ("b", CRASH_THRESHOLD + 1, BACK_OFF.initial_s)
    assert [uid for uid in "abcd" if may_sync(attribution, SLOT, uid, 33.0)] == ["a", "c", "d"], (
        "the deaths are explained"
    )


def test_a_solo_sync_that_lasts_too_long_lets_the_others_go_on() -> None:
    attribution, _ = deaths("ab", "ab")
    attribution.dispatched(SLOT, "a", 30.0)
    attribution.expire(30.0 + SOLO_S / 2)
    assert attribution.suspects() == {"a", "b"}
    assert not may_sync(attribution, SLOT, "b", 30.0 + SOLO_S / 2)
    attribution.expire(30.0 + SOLO_S)
    assert attribution.suspects() == {"b"}
    assert may_sync(attribution, SLOT, "b", 30.0 + SOLO_S)


def test_another_worker_s_suspects_are_synced_at_the_same_time() -> None:
    attribution, _ = deaths("ab", "ab")
    attribution.dispatched(SLOT, "a", 30.0)
    assert may_sync(attribution, SLOT + 1, "b", 30.0)


def test_the_back_off_doubles_up_to_its_maximum_and_somebody_may_cut_it_short() -> None:
    attribution, _ = deaths("a", "a")
    now, waits = 11.0, []
    for _ in range(7):
        assert not may_sync(attribution, SLOT, "a", now)
        now += BACK_OFF.max_s
        assert may_sync(attribution, SLOT, "a", now)
        attribution.dispatched(SLOT, "a", now)
        verdict = attribution.worker_died(SLOT, ("a",), (), now)
        assert verdict is not None
        waits.append(verdict.wait_s)
    assert waits == [20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    attribution.try_again("a", now)
    assert may_sync(attribution, SLOT, "a", now)
    verdict = attribution.worker_died(SLOT, ("a",), (), now)
    assert verdict is not None
    assert verdict.wait_s == BACK_OFF.initial_s, "it is another pod now"


def test_what_was_long_ago_counts_for_nothing() -> None:
    attribution, _ = deaths("a")
    attribution.expire(MEMORY_S + 1.0)
    assert attribution.worker_died(SLOT, ("a",), (), MEMORY_S + 20.0) is None


def test_a_pod_that_is_gone_is_forgotten_also_during_its_solo_sync() -> None:
    known = KnownPods()
    attribution, _ = deaths("ab", "ab", known=known)
    attribution.dispatched(SLOT, "a", 30.0)
    known.forget("a")
    assert may_sync(attribution, SLOT, "b", 30.0)


@pytest.mark.parametrize("seed", range(50))
def test_one_poison_pod_among_many_is_found_after_few_deaths_and_nobody_else_is_punished(seed: int) -> None:
    """All want to be synced all the time; a sync takes a second or two, that of the poison pod the worker."""
    rng = random.Random(seed)
    pods = [f"pod-{n:02}" for n in range(20)]
    poison = rng.choice(pods)
    attribution, now, in_flight = CrashAttribution(SOLO_S, KnownPods()), 0.0, {}
    probe_results: list[str] = []
    died_at: list[float] = []
    synced = dict.fromkeys(pods, 0)
    while now < 100.0:
        now += 0.25
        attribution.expire(now)
        for uid in pods:
            if uid not in in_flight and may_sync(attribution, SLOT, uid, now):
                attribution.dispatched(SLOT, uid, now)
                in_flight[uid] = now + rng.uniform(0.5, 2.0)
        if now >= in_flight.get(poison, now + 1.0):
            verdict = attribution.worker_died(SLOT, tuple(in_flight), set(pods).difference(in_flight), now)
            probe_results += [verdict.uid] if verdict else []
            died_at.append(now)
            in_flight.clear()
        for uid in [uid for uid, ends_at in in_flight.items() if now >= ends_at]:
            del in_flight[uid]
            attribution.sync_completed(SLOT, uid)
            synced[uid] += 1
    assert set(probe_results) == {poison}
    assert len(died_at) <= CRASH_THRESHOLD + len(probe_results), "every death after these leads to a verdict"
    assert len(probe_results) <= 4, "10, 20 and 40 seconds lie between them"
    assert min(count for uid, count in synced.items() if uid != poison) >= 20
