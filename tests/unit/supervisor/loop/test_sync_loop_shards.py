"""Pods change their worker only between two syncs; one that kills its worker is isolated, and nobody else is."""

from __future__ import annotations

from msgspec import structs

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeType
from ipc.link.messages.event_reasons import SYNC_CRASH_LOOP_BACK_OFF
from ipc.link.messages.pod_worker import WorkType
from supervisor.config.settings import WorkersSettings
from supervisor.pods.crash_attribution import BACK_OFF, CRASH_THRESHOLD, MEMORY_S, PROBATION_S
from supervisor.pods.lifecycle import PodLifecycle
from supervisor.processes.worker_pool import API_SLOT, FIRST_POD_SLOT, NODE_SLOT, QUARANTINE_SLOT
from tests.support.dialogue import Talk, absent, exited, pod, running

IDLE_TIMEOUT_S = float(WorkersSettings().idle_timeout_s)

A, B = FIRST_POD_SLOT, FIRST_POD_SLOT + 1
EVENT = f"{SYNC_CRASH_LOOP_BACK_OFF} a"

# --- another number of workers -----------------------------------------------------------------------------------


def loads(talk: Talk) -> dict[int, int]:
    return dict(talk.loop.pods_per_slot())


def test_more_workers_take_over_idle_pods_and_what_is_in_flight_stays() -> None:
    talk = Talk()
    talk.start("a", "b", "c", "d")
    talk.update(pod("a", image="v2"))
    assert talk.see(running("a")) == ["sync a"]
    assert talk.resize(2) == ["2 workers"]
    assert talk.tick() == []
    assert loads(talk) == {A: 4, B: 0}, "there is nobody yet"
    talk.up(B)
    talk.tick()
    assert loads(talk) == {A: 2, B: 2}
    assert {uid for uid, changed in talk.told.items() if changed.slot == B} == {"b", "c"}
    talk.done("a", changed=True)
    talk.update(pod("b", image="v2"), pod("d", image="v2"))
    talk.see(running("b"), running("d"))
    assert (talk.slots["a"], talk.slots["b"], talk.slots["d"]) == (A, B, A)


def test_a_worker_that_goes_gives_its_pods_away_one_by_one_as_they_come_to_rest() -> None:
    talk = Talk(workers=2, up=(NODE_SLOT, API_SLOT, A, B))
    talk.start("a", "b", "c", "d")
    assert loads(talk) == {A: 2, B: 2}
    talk.update(pod("b", image="v2"))
    assert talk.see(running("b")) == ["sync b"]
    assert talk.resize(1) == ["1 workers"]
    assert talk.tick() == []
    assert loads(talk) == {A: 3, B: 1}
    talk.done("b", changed=True)
    assert talk.tick() == [f"vacated {B}"]
    assert loads(talk) == {A: 4}
    assert talk.down(B, orderly=True) == []
    talk.update(pod("b", image="v3"))
    assert talk.see(running("b")) == ["sync b"]
    assert talk.slots["b"] == A


def test_a_pod_that_is_being_stopped_ends_where_it_is() -> None:
    talk = Talk(workers=2, up=(NODE_SLOT, API_SLOT, A, B))
    talk.start("a", "b")
    talk.remove("b")
    assert talk.see(running("b")) == ["terminating b"]
    talk.resize(1)
    talk.kill("b", 1)
    talk.done("b", cancelled=True, changed=True)
    assert talk.tick() == []
    assert loads(talk) == {A: 1, B: 1}
    assert talk.see(running("b")) == ["terminating b"]
    assert talk.slots["b"] == B
    talk.done("b", changed=True)
    assert talk.see(exited("b")) == ["terminated b"]
    assert talk.tick() == []
    talk.done("b", changed=True)
    assert talk.see(absent("b")) == ["untrack b"]
    assert talk.tick() == [f"vacated {B}"]


def test_a_worker_that_dies_while_it_gives_its_pods_away_has_none_left() -> None:
    talk = Talk(workers=2, up=(NODE_SLOT, API_SLOT, A, B))
    talk.start("a", "b")
    talk.update(pod("b", image="v2"))
    talk.see(running("b"))
    talk.resize(1)
    assert talk.down(B) == ["observe b"]
    assert talk.tick() == [f"vacated {B}"]
    assert talk.see(running("b")) == ["sync b"]
    assert talk.slots["b"] == A


def test_a_worker_that_is_wanted_again_before_it_is_empty_goes_on() -> None:
    talk = Talk(workers=2, up=(NODE_SLOT, API_SLOT, A, B))
    talk.start("a", "b")
    talk.resize(1)
    talk.resize(2)
    assert talk.tick() == []
    assert loads(talk) == {A: 1, B: 1}
    assert talk.add("c", "d") == ["track c", "track d", "sync c", "sync d"]
    assert (talk.slots["c"], talk.slots["d"]) == (A, B)


def test_pods_even_out_when_others_have_gone() -> None:
    talk = Talk(workers=2, up=(NODE_SLOT, API_SLOT, A, B))
    talk.start("a", "b", "c", "d", "e", "f")
    for uid in ("b", "d", "f"):
        talk.remove(uid)
        talk.see(exited(uid))
        talk.done(uid, changed=True)
        talk.see(absent(uid))
    assert loads(talk) == {A: 3, B: 0}
    talk.tick()
    assert loads(talk) == {A: 2, B: 1}


def test_what_can_move() -> None:
    lifecycle = PodLifecycle(pod("a"))
    assert lifecycle.can_move
    lifecycle.dispatched(A, 1)
    assert not lifecycle.can_move
    lifecycle.lost()
    lifecycle.terminate()
    assert not lifecycle.can_move


# --- as many workers as there are pods for -----------------------------------------------------------------------


def test_a_worker_comes_with_the_pods_that_need_it_and_goes_when_they_have_gone() -> None:
    talk = Talk(workers=2, pods_per_worker=3)
    talk.start("a", "b", "c")
    assert loads(talk) == {A: 3}
    assert talk.add("d") == ["track d", "2 workers", "sync d"], "who brings a worker does not wait for it"
    assert talk.slots["d"] == A
    talk.up(B)
    talk.done("d", changed=True)
    talk.see(running("d"))
    talk.done("d")
    talk.tick()
    assert loads(talk) == {A: 2, B: 2}
    for uid in ("a", "c"):
        assert talk.tick() == [], "who is there stays while the other would be full without it"
        talk.remove(uid)
        talk.see(exited(uid))
        talk.done(uid, changed=True)
        talk.see(absent(uid))
    assert talk.tick() == ["1 workers", f"vacated {B}"]
    assert loads(talk) == {A: 2}


def test_pods_that_come_while_a_worker_goes_keep_it() -> None:
    talk = Talk(workers=2, pods_per_worker=2)
    talk.start("a", "b")
    talk.up(B)
    assert "2 workers" in talk.add("c")
    talk.done("c", changed=True)
    talk.update(pod("c", image="v2"))
    talk.see(running("c"))
    for uid in ("a", "b"):
        talk.remove(uid)
        talk.see(exited(uid))
        talk.done(uid, changed=True)
        talk.see(absent(uid))
    assert talk.tick() == ["1 workers"], "its pod is in flight"
    assert talk.add("d", "e") == ["track d", "track e", "2 workers", "sync d", "sync e"]
    talk.done("c", changed=True)
    assert talk.tick() == []
    assert sum(loads(talk).values()) == 3


def test_a_worker_goes_when_pods_have_been_quiet_for_long_and_comes_back_with_those_that_are_busy() -> None:
    talk = Talk(workers=2, pods_per_worker=3)
    talk.start("a", "b", "c")
    talk.add("d")
    talk.up(B)
    talk.done("d", changed=True)
    talk.see(running("d"))
    talk.done("d")
    talk.tick()
    assert loads(talk) == {A: 2, B: 2}
    talk.mono += IDLE_TIMEOUT_S
    assert talk.tick()[:2] == ["1 workers", f"vacated {B}"]
    assert loads(talk) == {A: 4}
    for uid in "abcd":
        talk.done(uid)
    for uid in "abc":
        talk.update(pod(uid, image="v2"))
        talk.done(uid, changed=True)
    assert "2 workers" in talk.tick(), "three busy ones and a quiet one"


# --- a worker that is asked to leave -----------------------------------------------------------------------------


def test_who_was_asked_to_leave_gets_no_more_work_and_may_still_answer() -> None:
    talk = Talk()
    talk.start("a", "b")
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    talk.leave(A)
    talk.update(pod("b", image="v2"))
    assert talk.see(running("b")) == []
    assert talk.done("a", cancelled=True, changed=True) == ["observe a"]
    assert talk.see(running("a")) == []
    talk.down(A, orderly=True)
    assert talk.up(A, 2) == ["sync a", "sync b"]


# --- a pod that kills its worker ---------------------------------------------------------------------------------


def die(talk: Talk, *uids: str, incarnation: int) -> list[str]:
    """The worker dies; the next incarnation is there and its pods were looked at."""
    words = talk.down(A)
    talk.up(A, incarnation)
    return [*words, *talk.see(*(running(uid) for uid in uids))]


def poisoned() -> Talk:
    """``a`` has killed its worker as often as it may, and is in quarantine; ``b`` was in flight once."""
    talk = Talk()
    talk.start("a", "b")
    talk.update(pod("a", image="v2"), pod("b", image="v2"))
    talk.see(running("a"), running("b"))
    die(talk, "a", "b", incarnation=2)
    talk.done("b", changed=True)
    assert talk.events == []
    words = die(talk, "a", incarnation=3)
    assert words[:2] == ["death explained", "1 workers and quarantine"]
    assert not any(word.startswith("sync") for word in words)
    assert loads(talk) == {A: 1, QUARANTINE_SLOT: 1}
    assert talk.up(QUARANTINE_SLOT) == []
    return talk


def test_a_pod_that_kills_its_worker_pauses_and_the_others_go_on() -> None:
    talk = poisoned()
    assert talk.events == [EVENT]
    assert f"{CRASH_THRESHOLD} deaths of its worker in a row" in talk.told["a"].summary
    talk.update(pod("b", image="v3"))
    assert talk.see(running("b")) == ["sync b"]
    talk.done("b")
    assert talk.tick() == [], "too early"
    assert talk.tick(after_s=BACK_OFF.initial_s) == ["sync a"]
    assert talk.slots["a"] == QUARANTINE_SLOT
    assert "death explained" in talk.down(QUARANTINE_SLOT)
    assert talk.events == [EVENT, EVENT]
    assert (talk.told["b"].slot, talk.told["a"].slot) == (A, QUARANTINE_SLOT)


def test_an_isolated_pod_that_comes_through_is_synced_as_ever_where_it_hurts_nobody() -> None:
    talk = poisoned()
    talk.tick(after_s=BACK_OFF.initial_s)
    assert talk.done("a", changed=True) == ["observe a"]
    talk.see(running("a"))
    talk.done("a")
    talk.tick(after_s=MEMORY_S - 100.0)
    assert loads(talk) == {A: 1, QUARANTINE_SLOT: 1}
    talk.see(running("a"))
    talk.done("a")
    assert {"1 workers", f"vacated {QUARANTINE_SLOT}"} <= {*talk.tick(after_s=200.0)}
    assert loads(talk) == {A: 2}


def test_another_manifest_is_another_chance_where_it_hurts_nobody_and_then_among_the_others() -> None:
    talk = poisoned()
    assert talk.update(pod("a", image="v3")) == ["sync a"]
    assert talk.slots["a"] == QUARANTINE_SLOT
    talk.done("a", changed=True)
    talk.see(running("a"))
    talk.done("a")
    assert {"1 workers", f"vacated {QUARANTINE_SLOT}"} <= {*talk.tick(after_s=2 * PROBATION_S)}
    assert loads(talk) == {A: 2}


def test_a_restart_of_its_worker_is_another_chance_and_nobody_is_to_blame_for_that_end() -> None:
    talk = poisoned()
    talk.leave(QUARANTINE_SLOT)
    assert talk.down(QUARANTINE_SLOT, orderly=True) == []
    assert talk.up(QUARANTINE_SLOT, 5) == ["sync a"]
    talk.leave(QUARANTINE_SLOT)
    talk.down(QUARANTINE_SLOT, orderly=True)
    assert talk.events == [EVENT]


def test_suspects_are_tried_one_after_the_other_until_it_is_known_who_it_was() -> None:
    talk = Talk()
    talk.start("a", "b", "c")
    talk.update(*(pod(uid, image="v2") for uid in "abc"))
    talk.see(*(running(uid) for uid in "abc"))
    die(talk, *"abc", incarnation=2)
    assert die(talk, *"abc", incarnation=3) == ["observe a b c", "sync a"]
    assert talk.done("a", changed=True) == ["sync b", "observe a"]
    assert "death explained" in talk.down(A)
    assert talk.events == [f"{SYNC_CRASH_LOOP_BACK_OFF} b"]
    assert talk.up(A, 5) == ["sync c"]
    assert talk.see(running("b")) == []


def test_an_orphan_can_be_isolated_too() -> None:
    talk = Talk()
    talk.relist(running("x"), row=-1)
    talk.ready()
    talk.keep_house()
    for incarnation in range(2, 2 + CRASH_THRESHOLD):
        assert talk.see(running("x")) == ["terminating x"]
        talk.down(A)
        talk.up(A, incarnation)
    assert talk.events == [f"{SYNC_CRASH_LOOP_BACK_OFF} x"]


# --- a pod in whose steps its worker dies, or hangs --------------------------------------------------------------


def with_probe(uid: str, *, image: str = "v1") -> Pod:
    made = pod(uid, image=image)
    main = structs.replace(made.spec.containers[0], readiness_probe=Probe(exec=ExecAction(command=("x",))))
    return structs.replace(made, spec=structs.replace(made.spec, containers=(main,)))


def caught(kills: int = CRASH_THRESHOLD) -> Talk:
    """Nothing is in flight; the worker has died in steps for ``a`` so often."""
    talk = Talk()
    talk.ready()
    talk.add(with_probe("a"), with_probe("b"))
    talk.relist()
    for row, uid in enumerate("ab"):
        talk.done(uid, changed=True)
        talk.fall_due(uid)
        talk.see(running(uid), row=row)
        talk.done(uid)
    talk.verdict("a", ProbeType.READINESS, ProbeResult.SUCCESS)
    for incarnation in range(2, 2 + kills):
        talk.down(A, at="a")
        talk.up(A, incarnation)
    return talk


def test_a_pod_whose_probes_kill_its_worker_is_found_at_the_second_death_and_probed_elsewhere_later() -> None:
    talk = caught()
    assert talk.events == [EVENT]
    assert talk.up(QUARANTINE_SLOT) == []
    assert {uid: slot for uid, (slot, _) in talk.probing.items()} == {"b": A}
    assert talk.told["a"].status.container_statuses[0].ready, "what its probes have said counts"
    assert talk.tick() == []
    assert talk.tick(after_s=BACK_OFF.initial_s) == ["probe a"]
    assert talk.probing["a"][0] == QUARANTINE_SLOT
    talk.down(QUARANTINE_SLOT, at="a")
    assert talk.events == [EVENT, EVENT]
    assert "next try in 20 s" in talk.told["a"].summary
    assert talk.up(QUARANTINE_SLOT, 2) == []
    assert talk.tick(after_s=BACK_OFF.initial_s) == []
    assert talk.tick(after_s=BACK_OFF.initial_s) == ["probe a"]


def test_one_death_in_a_step_of_a_pod_takes_nothing_from_it() -> None:
    talk = caught(kills=1)
    assert talk.events == []
    assert {uid: slot for uid, (slot, _) in talk.probing.items()} == {"a": A, "b": A}


def test_a_death_in_a_step_of_a_pod_that_is_gone_is_nobody_s() -> None:
    talk = Talk()
    talk.start("b")
    for incarnation in range(2, 5):
        talk.update(pod("b", image=f"v{incarnation}"))
        assert talk.see(running("b")) == ["sync b"]
        talk.down(A, at="gone")
        talk.up(A, incarnation)
    assert talk.events == []


def test_a_quarantined_pod_whose_sync_is_in_flight_elsewhere_moves_when_that_has_ended() -> None:
    talk = Talk(workers=2, up=(NODE_SLOT, API_SLOT, A, B))
    talk.start("a", "b")
    talk.update(pod("a", image="v2"))
    assert talk.see(running("a")) == ["sync a"]
    for incarnation in (2, 3):
        talk.down(B, at="a")
        talk.up(B, incarnation)
    assert talk.events == [EVENT]
    assert loads(talk) == {A: 1, B: 1}
    talk.done("a", changed=True)
    assert talk.tick() == ["2 workers and quarantine"]
    assert loads(talk)[QUARANTINE_SLOT] == 1


def test_a_removal_of_a_quarantined_pod_is_tried_at_once_without_its_probes() -> None:
    talk = caught()
    talk.up(QUARANTINE_SLOT)
    words = [*talk.remove("a"), *talk.relist(), *talk.see(running("a"))]
    assert words == ["observe a", "terminating a"]
    assert talk.slots["a"] == QUARANTINE_SLOT
    assert talk.syncs["a"].pod is not None, "as its manifest says"


def test_a_removal_that_kills_even_so_is_carried_out_without_the_manifest() -> None:
    talk = caught()
    talk.up(QUARANTINE_SLOT)
    talk.remove("a")
    talk.relist()
    talk.see(running("a"))
    talk.down(QUARANTINE_SLOT, at="a")
    talk.up(QUARANTINE_SLOT, 2)
    talk.see(running("a"))
    assert talk.tick() == []
    talk.tick(after_s=BACK_OFF.initial_s)
    sync = talk.syncs["a"]
    assert (sync.kind, sync.pod, sync.grace_period_s) == (WorkType.TERMINATING, None, 0)
    assert "a" not in talk.probing
    talk.done("a", changed=True)
    assert talk.see(exited("a")) == ["terminated a"]
    talk.done("a", changed=True)
    assert talk.see(absent("a")) == ["untrack a"]
    assert talk.tick() == ["1 workers", f"vacated {QUARANTINE_SLOT}"]
    assert loads(talk) == {A: 1}


def test_a_pod_whose_termination_kills_is_removed_after_the_second_death() -> None:
    talk = Talk()
    talk.start("a", "b")
    talk.remove("a")
    for incarnation in (2, 3):
        talk.see(running("a"))
        assert talk.syncs["a"].kind is WorkType.TERMINATING
        talk.down(A, at="a")
        talk.up(A, incarnation)
    assert talk.events == [EVENT]
    talk.up(QUARANTINE_SLOT)
    talk.see(running("a"))
    talk.tick(after_s=BACK_OFF.initial_s)
    assert (talk.slots["a"], talk.syncs["a"].pod) == (QUARANTINE_SLOT, None)


def test_two_poison_pods_of_one_shard_are_both_found() -> None:
    talk = Talk()
    talk.start("a", "b", "c")
    for incarnation, uid in enumerate("abab", start=2):
        talk.down(A, at=uid)
        talk.up(A, incarnation)
    assert talk.events == [EVENT, f"{SYNC_CRASH_LOOP_BACK_OFF} b"]
    assert loads(talk) == {A: 1, QUARANTINE_SLOT: 2}
