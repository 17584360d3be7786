"""What the sync loop answers: one pod's way, its update, its end (upstream: kubelet.go's handlers, pod_workers.go)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.api import Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes, Pod
from ipc.messages import LookFailed, SyncAction, SyncResult
from ipc.runtime import RuntimePodStatus
from supervisor.sources.types import PodOperation
from tests.unit.supervisor.dialogue import POD_SLOT, WALL, Talk, absent, exited, pod, running

# --- a pod begins ------------------------------------------------------------------------------------------------


def test_a_pod_comes_up() -> None:
    talk = Talk()
    assert talk.add("a") == ["track a", "observe a"], "nothing is dispatched before somebody has looked"
    assert talk.phase("a") == "Pending"
    assert talk.relist() == ["sync a"], "the relist did not show it: it does not exist"
    assert talk.syncs["a"].status == msgspec.structs.replace(absent("a"), observed_at=talk.mono - 0.5)
    assert talk.done("a", changed=True) == ["observe a"], "something was touched"
    assert talk.see(running("a")) == ["sync a"], "PLEG: it changed"
    assert talk.phase("a") == "Running"
    assert talk.done("a") == []
    assert talk.relist() == []


def test_a_pod_that_is_added_after_the_relist_needs_no_look_of_its_own() -> None:
    talk = Talk()
    talk.relist()
    assert talk.add("a", "b") == ["track a", "track b", "sync a", "sync b"]


def test_a_running_pod_is_adopted_with_its_view_from_the_relist() -> None:
    talk = Talk()
    talk.relist(running("a"), row=-1)
    assert talk.add("a") == ["track a", "sync a"]
    status = talk.syncs["a"].status
    assert status is not None
    assert status.is_running()
    assert talk.phase("a") == "Running"


def test_a_view_on_the_board_travels_by_its_row() -> None:
    talk = Talk()
    talk.add("a")
    assert talk.see(running("a"), row=5) == ["sync a"]
    assert (talk.syncs["a"].row, talk.syncs["a"].status) == (5, None)


@pytest.mark.parametrize("op", [PodOperation.RESTORE, PodOperation.UPDATE, PodOperation.RECONCILE])
def test_whatever_names_an_unknown_pod_adds_it(op: PodOperation) -> None:
    talk = Talk()
    talk.relist()
    assert talk.update("a", op=op) == ["track a", "sync a"]


# --- no acting on an old view ------------------------------------------------------------------------------------


def test_after_a_sync_only_a_newer_view_counts() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.update(pod("a", image="v2")) == ["observe a"]
    assert talk.see(running("a"), age_s=2.5) == ["observe a"], "that look began before the last sync ended"
    assert talk.see(running("a")) == ["sync a"]
    assert talk.syncs["a"].min_observed_at < talk.mono - 1.0


def test_a_relist_that_began_after_the_sync_is_a_newer_view() -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    assert talk.relist(age_s=30.0) == []
    assert talk.relist() == ["sync a"]


def test_a_look_is_asked_for_once_until_it_is_answered() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.update(pod("a", image="v2")) == ["observe a"]
    assert talk.update(pod("a", image="v3")) == []
    assert talk.tick() == []


def test_an_inline_view_has_the_date_of_the_relist_that_confirmed_it() -> None:
    talk = Talk()
    talk.ready()
    talk.add("a")
    talk.relist(running("a"), row=-1)
    talk.done("a")
    talk.update(pod("a", image="v2"))
    assert talk.relist() == ["sync a"]
    sync = talk.syncs["a"]
    assert sync.status is not None
    assert sync.status.observed_at > sync.min_observed_at, "else the worker would refuse it as stale"


def test_a_view_that_cannot_be_read_is_asked_for_again_and_no_relist_stands_in_for_it() -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    assert talk.unreadable("a") == ["observe a"]
    assert talk.relist() == [], "it has told of the change before; the content that we have is older"
    assert talk.see(exited("a")) == ["sync a"]


def test_the_same_view_again_releases_who_waits() -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    assert talk.see(running("a")) == ["sync a"]
    talk.done("a")
    assert talk.see(running("a")) == [], "nobody waits"
    assert talk.update(pod("a", image="v3")) == ["sync a"], "it is still newer than the last act"


# --- updates -----------------------------------------------------------------------------------------------------


def test_the_latest_update_wins() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    assert talk.update(pod("a", image="v2")) == []
    assert talk.update(pod("a", image="v3")) == []
    talk.done("a", changed=True)
    assert talk.see(running("a")) == ["sync a"]
    wanted = talk.syncs["a"].pod
    assert wanted is not None
    assert wanted.spec.containers[0].image == "v3"
    assert talk.done("a") == [], "the one between was never acted on"


def test_an_update_that_is_refused_leaves_the_running_pod() -> None:
    talk = Talk()
    talk.start(pod("a", host_port=80), "b")
    assert talk.update(pod("b", host_port=80)) == ["keep b"], "what runs is what the next agent has to restore"
    assert talk.events == ["NodePorts b"]
    assert talk.phase("b") == "Running"
    assert talk.told["b"].pod == pod("b")


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    talk = Talk(max_pods=1)
    talk.start(pod("a", host_port=80))
    assert talk.update(pod("a", host_port=80, image="v2")) == ["observe a"]
    assert talk.events == []


# --- admission ---------------------------------------------------------------------------------------------------


def test_a_rejected_pod_fails_and_is_started_by_an_update_that_is_admitted() -> None:
    talk = Talk()
    talk.start(pod("a", host_port=80))
    assert talk.add(pod("b", host_port=80)) == ["track b", "terminated b"]
    assert talk.events == ["NodePorts b"]
    assert (talk.phase("b"), talk.told["b"].status.reason) == ("Failed", "NodePorts")
    assert talk.told["b"].status.message.startswith("Pod was rejected: ")
    talk.done("b")
    assert talk.see(absent("b"), row=1) == [], "kept until somebody removes or changes it"
    assert talk.update(pod("b", host_port=81)) == ["terminated b"]
    talk.done("b")
    assert talk.see(absent("b"), row=1) == ["untrack b", "track b", "sync b"]
    assert talk.phase("b") == "Pending"


def test_a_rejected_pod_holds_no_place() -> None:
    talk = Talk(max_pods=1)
    talk.relist()
    talk.ready()
    talk.add("a", "b")
    assert talk.phase("b") == "Failed"
    talk.remove("a")
    assert "sync c" in talk.add("c")


def test_a_pod_that_goes_down_holds_no_port() -> None:
    talk = Talk()
    talk.start(pod("a", host_port=80))
    talk.remove("a")
    assert talk.add(pod("b", host_port=80)) == ["track b", "sync b"]


# --- removal -----------------------------------------------------------------------------------------------------


def test_a_removed_pod_goes_down_and_is_forgotten() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.remove("a") == ["observe a"]
    assert talk.told["a"].deletion_timestamp
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 30
    assert talk.done("a", changed=True) == ["observe a"]
    assert talk.see(exited("a")) == ["terminated a"]
    assert talk.syncs["a"].remove
    assert talk.done("a", changed=True) == ["observe a"]
    assert talk.see(absent("a")) == ["untrack a"]
    assert talk.told == {}
    assert talk.loop.pods_per_slot() == {POD_SLOT: 0}


def test_a_removed_pod_is_not_forgotten_while_anything_is_left_of_it() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.see(exited("a"))
    talk.done("a", changed=True)
    assert talk.see(exited("a")) == ["terminated a"]


def test_termination_cancels_the_sync_in_flight() -> None:
    talk = Talk()
    talk.ready()
    talk.relist()
    talk.add("a")
    assert talk.remove("a") == ["cancel a"]
    assert talk.done("a", cancelled=True, changed=True) == ["observe a"]
    assert talk.see(running("a")) == ["terminating a"]


def test_a_kill_is_never_overwritten() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    assert talk.update(pod("a", image="v2")) == []
    assert talk.see(running("a")) == ["terminating a"]


def test_a_shorter_grace_interrupts_the_termination_and_a_longer_one_does_not() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.see(running("a"))
    assert talk.kill("a", 60) == []
    assert talk.kill("a", 5) == ["cancel a"]
    talk.done("a", cancelled=True, changed=True)
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 5


def test_a_kill_is_only_for_what_is_removed() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.kill("a", 1) == []


def test_a_pod_is_going_down_from_its_removal_to_its_end() -> None:
    talk = Talk()
    talk.start("a")
    assert not talk.is_going_down("a")
    talk.remove("a")
    assert talk.is_going_down("a")
    assert not talk.is_going_down("b")
    talk.see(exited("a"))
    talk.done("a", changed=True)
    assert talk.is_going_down("a")
    talk.see(absent("a"))
    assert not talk.is_going_down("a")


def test_a_pod_that_is_removed_before_it_ever_ran_goes_without_a_stop() -> None:
    talk = Talk()
    talk.ready()
    talk.add("a")
    assert talk.remove("a") == []
    assert talk.relist() == ["terminated a"]


def test_a_failed_stop_is_tried_again_when_its_view_changes_or_its_time_comes() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.see(running("a"))
    assert talk.done("a", error="Timeout", changed=True) == ["observe a"]
    assert talk.see(running("a")) == [], "as it was"
    assert talk.tick(after_s=15.0) == ["terminating a"]
    talk.done("a", error="Timeout")
    assert talk.see(exited("a")) == ["terminated a"]


def test_removing_twice_is_removing_once() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    assert talk.remove("a") == []
    talk.see(exited("a"))
    assert talk.remove("a") == []
    talk.done("a", changed=True)
    assert talk.see(absent("a")) == ["untrack a"]
    assert talk.remove("a") == []


# --- the sources are not read yet --------------------------------------------------------------------------------


def test_nothing_is_removed_before_every_source_was_read() -> None:
    talk = Talk()
    talk.update("a", op=PodOperation.RESTORE)
    talk.relist(running("a"))
    assert talk.remove("a") == []
    assert talk.is_going_down("a")
    assert talk.kill("a", 3) == [], "not even when somebody is in a hurry"
    talk.done("a")
    assert talk.ready() == ["observe a"]
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 3


def test_nothing_is_removed_before_one_full_relist() -> None:
    talk = Talk()
    talk.ready()
    talk.add("a")
    talk.see(running("a"))
    talk.done("a")
    assert talk.remove("a") == [], "one pod was seen, the host was not"
    assert "terminating a" in talk.relist(running("a"))


def test_a_removal_that_waited_is_forgotten_when_the_pod_is_stated_again() -> None:
    talk = Talk()
    talk.update("a", op=PodOperation.RESTORE)
    talk.relist(running("a"))
    talk.remove("a")
    talk.done("a")
    assert talk.add(pod("a", image="v2")) == ["observe a"]
    assert talk.ready() == []
    assert talk.see(running("a")) == ["sync a"]


def test_a_completed_pod_keeps_its_containers_while_its_removal_waits() -> None:
    talk = Talk()
    talk.update(pod("a", policy="Never"), op=PodOperation.RESTORE)
    talk.remove(pod("a", policy="Never"))
    assert talk.relist(exited("a")) == ["terminated a"]
    assert not talk.syncs["a"].remove
    talk.done("a")
    talk.see(exited("a"))
    assert talk.add(pod("a", policy="Never")) == [], "it is still the same pod, and it is done"
    assert talk.ready() == []
    assert talk.phase("a") == "Succeeded"


def test_a_pod_whose_removal_waits_keeps_its_port() -> None:
    talk = Talk()
    talk.relist()
    talk.update(pod("a", host_port=80), op=PodOperation.RESTORE)
    talk.remove(pod("a", host_port=80))
    talk.add(pod("b", host_port=80))
    assert talk.phase("b") == "Failed"


# --- the same UID again ------------------------------------------------------------------------------------------


def gone(talk: Talk, uid: str) -> list[str]:
    """A removal goes its whole way; the answer to its end."""
    talk.see(running(uid))
    talk.done(uid, changed=True)
    talk.see(exited(uid))
    talk.done(uid, changed=True)
    return talk.see(absent(uid))


def test_a_pod_that_is_added_again_while_it_goes_down_starts_anew_after_its_end() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    assert talk.add(pod("a", image="v2")) == []
    assert gone(talk, "a") == ["untrack a", "track a", "sync a"]
    wanted = talk.syncs["a"].pod
    assert wanted is not None
    assert wanted.spec.containers[0].image == "v2"
    assert talk.told["a"].deletion_timestamp == ""


def test_an_update_of_a_pod_that_waits_for_the_end_of_the_one_before_is_not_lost() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.add(pod("a", image="v2"))
    talk.update(pod("a", image="v3"))
    gone(talk, "a")
    wanted = talk.syncs["a"].pod
    assert wanted is not None
    assert wanted.spec.containers[0].image == "v3"


def test_a_pod_that_is_removed_again_while_it_waits_does_not_start() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.add("a")
    talk.remove("a")
    assert gone(talk, "a") == ["untrack a"]


def test_a_successor_passes_admission_when_its_time_comes() -> None:
    talk = Talk()
    talk.start(pod("a", host_port=80))
    talk.remove("a")
    talk.add(pod("a", host_port=80))
    talk.add(pod("b", host_port=80))
    gone(talk, "a")
    assert (talk.phase("a"), talk.told["a"].status.reason) == ("Failed", "NodePorts")


# --- it ends by itself -------------------------------------------------------------------------------------------


def test_a_pod_that_completed_is_terminated_and_kept_until_it_is_removed() -> None:
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    assert talk.see(exited("a")) == ["terminated a"], "what is down needs no stop"
    assert not talk.syncs["a"].remove
    assert talk.done("a") == ["observe a"]
    assert talk.see(exited("a")) == []
    assert talk.phase("a") == "Succeeded"
    assert talk.tick(after_s=1000.0) == []
    assert talk.remove("a") == ["terminated a"]
    assert talk.syncs["a"].remove


def test_a_completed_pod_whose_sandbox_still_runs_is_stopped_first() -> None:
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    half_down = msgspec.structs.replace(running("a"), containers=exited("a", 7).containers)
    assert talk.see(half_down) == ["terminating a"]
    assert talk.phase("a") == "Running", "something of it may still run"
    assert talk.done("a") == ["observe a"]
    assert talk.see(exited("a", 7)) == ["terminated a"]
    assert talk.phase("a") == "Failed"
    assert talk.told["a"].deletion_timestamp == ""


def test_a_pod_that_completes_while_it_is_deleted_is_told_so_when_it_is_down() -> None:
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    talk.remove("a")
    assert talk.see(running("a")) == ["terminating a"]
    half_down = msgspec.structs.replace(running("a"), containers=exited("a").containers)
    talk.see(half_down)
    assert talk.phase("a") == "Running"
    talk.done("a")
    assert talk.see(exited("a")) == ["terminated a"]
    assert talk.phase("a") == "Succeeded"


def test_a_completed_pod_that_runs_again_goes_down_again() -> None:
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    talk.see(exited("a"))
    talk.done("a")
    talk.see(exited("a"))
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.phase("a") == "Succeeded", "a terminal phase is never left"


def test_an_update_does_not_revive_a_completed_pod() -> None:
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    talk.see(exited("a"))
    talk.done("a")
    talk.see(exited("a"))
    assert talk.update(pod("a", policy="Never", image="v2")) == []


# --- orphans -----------------------------------------------------------------------------------------------------


def test_an_orphan_goes_when_the_sources_are_read_and_a_relist_was_made() -> None:
    talk = Talk()
    assert talk.see(running("x"), row=-1) == []
    talk.ready()
    assert talk.keep_house() == [], "no relist yet"
    talk.relist(running("x"), row=-1)
    assert talk.keep_house() == ["track x", "observe x"], "only a view from now on counts"
    assert talk.see(running("x")) == ["terminating x"]
    assert (talk.syncs["x"].pod, talk.syncs["x"].grace_period_s) == (None, None), "its labels say how long it gets"
    talk.done("x", changed=True)
    assert talk.see(exited("x")) == ["terminated x"]
    assert talk.syncs["x"].remove
    talk.done("x", changed=True)
    assert talk.see(absent("x")) == ["untrack x"]


def test_without_the_sources_nobody_is_an_orphan() -> None:
    talk = Talk()
    talk.relist(running("x"), row=-1)
    assert talk.keep_house() == []
    assert talk.add("x") == ["track x", "sync x"]


def test_a_manifest_for_an_orphan_on_its_way_out_waits_for_its_end() -> None:
    talk = Talk()
    talk.ready()
    talk.relist(running("x"), row=-1)
    talk.keep_house()
    assert talk.add("x") == []
    assert talk.update(pod("x", image="v2")) == []
    assert gone(talk, "x") == ["untrack x", "track x", "sync x"]
    wanted = talk.syncs["x"].pod
    assert wanted is not None
    assert wanted.spec.containers[0].image == "v2"


# --- pods that cannot be looked at -------------------------------------------------------------------------------


def test_a_pod_that_cannot_be_looked_at_keeps_nobody_else_from_going() -> None:
    talk = Talk()
    talk.add("bad", "old")
    talk.ready()
    assert talk.remove("old") == []
    assert talk.relist(running("x"), running("old"), unseen=("bad",), row=-1) == ["terminating old"]
    assert talk.keep_house() == ["track x", "observe x"]
    assert talk.see(running("x")) == ["terminating x"]


def test_nothing_is_done_to_a_pod_that_cannot_be_looked_at_until_it_can() -> None:
    talk = Talk()
    talk.ready()
    talk.add("bad")
    talk.relist(unseen=("bad",))
    assert (talk.phase("bad"), talk.told["bad"].status.container_statuses) == ("Pending", ()), "it is not known"
    assert talk.remove("bad") == []
    assert talk.relist(unseen=("bad",)) == []
    assert talk.tick(100.0) == []
    assert talk.see(running("bad")) == ["terminating bad"]
    talk.done("bad", changed=True)
    assert talk.relist(unseen=("bad",)) == [], "what it was before says nothing"
    assert talk.relist(exited("bad")) == ["terminated bad"]


def test_a_relist_that_passes_over_a_pod_tells_its_watchers_nothing_new() -> None:
    talk = Talk()
    talk.start("a")
    before = talk.told["a"]
    talk.tick(200.0)
    assert talk.relist(unseen=("a",)) == []
    assert talk.told["a"] == before


def test_an_orphan_that_cannot_be_looked_at_stays_and_its_directories_too() -> None:
    talk = Talk()
    talk.ready()
    talk.relist(running("x"), row=-1)
    talk.relist(unseen=("x", "y"))
    assert talk.keep_house() == ["track x", "observe x"]
    assert talk.relist(unseen=("x", "y")) == [], "not taken for gone"
    talk.tick(100.0)
    assert talk.collected[-1] == ("x", "y")
    assert talk.see(running("x")) == ["terminating x"]


def test_stop_pods_waits_for_what_cannot_be_looked_at() -> None:
    talk = Talk()
    talk.stop_pods()
    assert talk.relist(unseen=("x",)) == []
    assert talk.relist() == ["pods stopped"]


# --- everything stops --------------------------------------------------------------------------------------------


def test_stop_pods_ends_when_a_later_relist_shows_nothing_of_ours() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.stop_pods() == ["relist", "observe a"]
    assert talk.add("b") == [], "whatever the sources say"
    assert gone(talk, "a") == ["untrack a"]
    assert talk.relist(running("x"), row=-1) == []
    talk.keep_house()
    assert gone(talk, "x") == ["untrack x", "pods stopped"]
    assert talk.relist() == [], "once"


def test_stop_pods_does_not_trust_what_was_seen_before() -> None:
    talk = Talk()
    assert talk.stop_pods() == ["relist"], "nobody has looked yet"
    assert talk.relist(age_s=10.0) == []
    assert talk.relist() == ["pods stopped"]


def test_stop_pods_needs_no_sources() -> None:
    talk = Talk()
    talk.relist(running("x"), row=-1)
    talk.stop_pods()
    assert talk.keep_house() == ["track x", "observe x"]


def test_stop_pods_drops_a_successor() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.add("a")
    talk.stop_pods()
    assert gone(talk, "a") == ["untrack a"]


# --- when it is due again ----------------------------------------------------------------------------------------

STARTED = SyncResult(action=SyncAction.START_CONTAINER, target="main")
PULL = SyncResult(action=SyncAction.START_CONTAINER, target="main", error="ErrImagePull")


def due_in_s(talk: Talk, uid: str) -> int:
    """After how many ticks of a second the pod is synced again, or looked at first."""
    for seconds in range(1, 200):
        if talk.tick() in ([f"observe {uid}"], [f"sync {uid}"]):
            return seconds
    raise AssertionError("never")


@pytest.mark.parametrize(
    ("error", "results", "between_s"),
    [
        ("", (), (60, 91)),
        ("", (STARTED,), (60, 91)),
        ("Timeout", (), (10, 16)),
        ("", (PULL,), (10, 16)),
    ],
)
def test_the_next_sync_comes_in_time(error: str, results: tuple[SyncResult, ...], between_s: tuple[int, int]) -> None:
    talk = Talk()
    talk.start("a")
    talk.tick(after_s=100.0)
    talk.see(running("a"))
    talk.done("a", error=error, results=results)
    assert between_s[0] <= due_in_s(talk, "a") <= between_s[1]


def test_after_a_sync_that_found_nothing_to_do_the_next_one_needs_no_look() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.tick(after_s=100.0) == ["sync a"]
    again = talk.syncs["a"]
    talk.done("a")
    assert talk.tick(after_s=100.0) == ["sync a"]
    assert talk.syncs["a"].min_observed_at == again.min_observed_at, "the worker believes that view too"
    talk.done("a")
    assert talk.update(pod("a", image="v2")) == ["observe a"], "an edit has one of its own"


@pytest.mark.parametrize(
    "answer",
    [{"error": "Timeout"}, {"cancelled": True}, {"results": (PULL,)}, {"changed": True}],
    ids=["failed", "cancelled", "failed in part", "did something"],
)
def test_after_any_other_sync_the_next_one_needs_a_look(answer: dict[str, Any]) -> None:
    talk = Talk()
    talk.start("a")
    talk.tick(after_s=100.0)
    asked = talk.done("a", **answer) + talk.tick(after_s=100.0)
    assert asked == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]


@pytest.mark.parametrize(("wait_s", "due_s"), [(3, 3), (40, 40), (300, 60)])
def test_a_back_off_is_over_when_it_is_over(wait_s: int, due_s: int) -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    retry_at = WALL + talk.mono + 1.0 + wait_s
    talk.done("a", results=(msgspec.structs.replace(PULL, error="CrashLoopBackOff", retry_at=retry_at),))
    assert due_in_s(talk, "a") == due_s
    assert "CrashLoopBackOff" in talk.told["a"].next_try["main"]


def test_a_stale_view_is_answered_by_a_fresh_look() -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    assert talk.done("a", error="StaleView") == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]
    assert talk.done("a") == []
    assert talk.tick() == [], "it was due once, not twice"


def test_a_pod_that_cannot_be_looked_at_says_so() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.say(LookFailed(uid="a", message="inspect: broken")) == []
    talk.say(LookFailed(uid="unknown", message="inspect: broken"))
    assert talk.events == ["FailedSync a"]


def test_of_pods_that_come_together_the_oldest_keeps_its_place() -> None:
    talk = Talk()
    talk.relist()
    made = (("young", "2026-11-20T10:00:01+00:00"), ("old", "2026-11-20T11:00:00+02:00"))
    talk.add(*(with_age(pod(uid, host_port=8080), at) for uid, at in made))
    assert (talk.phase("old"), talk.phase("young")) == ("Pending", "Failed")
    talk.add(with_age(pod("odd", host_port=8080), "yesterday"))
    assert talk.phase("odd") == "Failed", "a time that is none is no reason to fall over"


def with_age(wanted: Pod, created: str) -> Pod:
    return msgspec.structs.replace(
        wanted, metadata=msgspec.structs.replace(wanted.metadata, creation_timestamp=created)
    )


# --- what people see ---------------------------------------------------------------------------------------------


def test_why_a_start_failed_is_told_until_one_succeeds() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    talk.done("a", results=(PULL,), error="", changed=False)
    [main] = talk.told["a"].status.container_statuses
    assert main.state.waiting is not None
    assert main.state.waiting.reason == "ErrImagePull"
    talk.tick(after_s=20.0)
    talk.see(absent("a"))
    talk.done("a", results=(STARTED,), changed=True)
    talk.see(running("a"))
    [main] = talk.told["a"].status.container_statuses
    assert main.state.running is not None


def test_the_log_and_describe_follow_a_sync_that_fails_although_it_changes_nothing() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    tried = msgspec.structs.replace(PULL, retry_at=WALL + 200.0)
    talk.done("a", results=(PULL,), sentence="made it, main: ErrImagePull", changed=True)
    for sentence, result in (("first wait", tried), ("the same wait", tried), ("next wait", PULL)):
        talk.see(absent("a"))
        talk.update(pod("a", image=sentence))
        talk.done("a", results=(result,), sentence=sentence)
        assert talk.told["a"].sentence == sentence
    assert [line.partition(": ")[2] for line in talk.logs] == ["made it, main: ErrImagePull", "first wait", "next wait"]


def test_only_what_will_be_tried_has_a_next_try() -> None:
    talk = Talk()
    talk.start("a")
    waiting = msgspec.structs.replace(PULL, error="ImagePullBackOff", retry_at=WALL + 1000.0)
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    talk.done("a", results=(waiting, msgspec.structs.replace(waiting, target="was-renamed")))
    assert list(talk.told["a"].next_try) == ["main"]
    talk.remove("a")
    assert talk.told["a"].next_try == {}, "it goes down"


def test_an_unchanged_status_is_not_told_again() -> None:
    talk = Talk()
    talk.start("a")
    version = talk.told["a"].resource_version
    talk.update("a")
    talk.see(running("a"))
    talk.done("a")
    assert talk.told["a"].resource_version == version


# --- all containers restart --------------------------------------------------------------------------------------


def test_the_worker_is_told_that_all_containers_restart_until_everything_is_removed() -> None:
    rule = ContainerRestartRule(
        action="RestartAllContainers", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
    )
    wanted = pod("a")
    ruled = msgspec.structs.replace(wanted.spec.containers[0], restart_policy="Never", restart_policy_rules=(rule,))
    spec = msgspec.structs.replace(wanted.spec, containers=(ruled,))
    talk = Talk()
    talk.start(msgspec.structs.replace(wanted, spec=spec))
    assert not talk.syncs["a"].restarting_all
    triggered = msgspec.structs.replace(running("a"), containers=exited("a", 42).containers)
    assert talk.see(triggered) == ["sync a"]
    assert talk.syncs["a"].restarting_all
    talk.done("a", changed=True)
    removed = msgspec.structs.replace(triggered, containers=())
    assert talk.see(removed) == ["sync a"]
    assert not talk.syncs["a"].restarting_all, "now they start"
    [main] = talk.told["a"].status.container_statuses
    assert main.state.waiting is not None
    assert (main.state.waiting.reason, main.restart_count) == ("RestartingAllContainers", 1)
    assert talk.phase("a") == "Running"


# --- pods of which nothing but logs is left ----------------------------------------------------------------------


def test_a_pod_that_was_removed_by_hand_goes_on_counting_however_late_its_manifest_comes() -> None:
    talk = Talk()
    talk.ready()
    only_logs = RuntimePodStatus(uid="x", lost_attempts={"main": 4})
    talk.relist(only_logs, row=-1)
    assert talk.keep_house() == [], "it is no orphan"
    assert talk.add("x") == ["track x", "sync x"]
    assert talk.told["x"].status.container_statuses[0].restart_count == 5


def test_logs_that_are_gone_count_nothing() -> None:
    talk = Talk()
    talk.ready()
    talk.relist(RuntimePodStatus(uid="x", lost_attempts={"main": 4}), row=-1)
    talk.relist()
    talk.add("x")
    assert talk.told["x"].status.container_statuses[0].restart_count == 0


# --- what the log says of Podman's absence -------------------------------------------------------------------------


def test_a_sync_that_fails_again_for_the_same_reason_is_no_news() -> None:
    talk = Talk()
    talk.start("a")
    before = len(talk.logs)
    for _ in range(5):
        talk.tick(100.0)
        talk.relist()
        talk.done("a", error="Timeout", message="no answer within 15 s")
    assert len(talk.logs) == before + 1
    talk.tick(100.0)
    talk.relist()
    talk.done("a")
    talk.tick(100.0)
    talk.relist()
    talk.done("a", error="Timeout", message="no answer within 15 s")
    assert len(talk.logs) == before + 3, "that it went well is news, too"


def test_that_podman_is_away_is_no_line_for_every_pod() -> None:
    talk = Talk()
    pods = ("a", "b", "c")
    talk.start(*pods)
    talk.levels.clear()
    talk.tick(200.0)
    talk.relist()
    for uid in pods:
        talk.done(uid, error="Unavailable", message="Podman does not answer")
    assert talk.levels == ["debug"] * len(pods)
    talk.tick(200.0)
    talk.relist()
    talk.done("a", error="Unavailable", message="it went away over it", changed=True)
    assert talk.levels[-1] == "warning", "it has done something"


# --- a sandbox that is lost too early ------------------------------------------------------------------------------


def test_a_never_pod_that_loses_its_sandbox_before_all_have_run_stays_pending() -> None:
    """computePodActions makes no other sandbox for it, and getPhase waits for a container that never comes."""
    talk = Talk()
    talk.ready()
    one = pod("a", policy="Never")
    spec = msgspec.structs.replace(one.spec, containers=(*one.spec.containers, Container(name="second", image="v1")))
    talk.add(msgspec.structs.replace(one, spec=spec))
    talk.relist()
    talk.done("a", changed=True)
    assert talk.see(exited("a", 137)) == ["sync a"]
    talk.done("a")
    talk.tick(100.0)
    talk.relist()
    assert talk.phase("a") == "Pending"
