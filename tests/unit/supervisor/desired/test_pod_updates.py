"""Changes of what is wanted, in the sync loop: additions, updates, removals, orphans (kubelet.go's handlers)."""

from __future__ import annotations

import msgspec
import pytest

from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.status import PodPhase, PodStatus
from ipc.link.messages.sync_error import SyncError
from supervisor.protocol.source_updates import PodOperation, PodUpdate
from tests.support.dialogue import POD_SLOT, Talk, absent, exited, pod, running

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
    talk.start(pod("a", host_port=8080), "b")
    assert talk.update(pod("b", host_port=8080)) == ["keep b"], "what runs is what the next agent has to restore"
    assert talk.events == ["NodePorts b"]
    assert talk.phase("b") == "Running"
    assert talk.told["b"].pod == pod("b")


def test_a_pod_does_not_stand_in_its_own_way() -> None:
    talk = Talk(max_pods=1)
    talk.start(pod("a", host_port=8080))
    assert talk.update(pod("a", host_port=8080, image="v2")) == ["observe a"]
    assert talk.events == []


# --- admission ---------------------------------------------------------------------------------------------------


def test_a_rejected_pod_fails_and_is_started_by_an_update_that_is_admitted() -> None:
    talk = Talk()
    talk.start(pod("a", host_port=8080))
    assert talk.add(pod("b", host_port=8080)) == ["track b", "terminated b"]
    assert talk.events == ["NodePorts b"]
    assert (talk.phase("b"), talk.told["b"].status.reason) == ("Failed", "NodePorts")
    assert talk.told["b"].status.message.startswith("Pod was rejected: ")
    talk.done("b")
    assert talk.see(absent("b"), row=1) == [], "kept until somebody removes or changes it"
    assert talk.update(pod("b", host_port=8081)) == ["terminated b"]
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
    talk.start(pod("a", host_port=8080))
    talk.remove("a")
    assert talk.add(pod("b", host_port=8080)) == ["track b", "sync b"]


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
    assert talk.done("a", error=SyncError.TIMEOUT, changed=True) == ["observe a"]
    assert talk.see(running("a")) == [], "as it was"
    assert talk.tick(after_s=15.0) == ["terminating a"]
    talk.done("a", error=SyncError.TIMEOUT)
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
    talk.update(pod("a", host_port=8080), op=PodOperation.RESTORE)
    talk.remove(pod("a", host_port=8080))
    talk.add(pod("b", host_port=8080))
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
    talk.start(pod("a", host_port=8080))
    talk.remove("a")
    talk.add(pod("a", host_port=8080))
    talk.add(pod("b", host_port=8080))
    gone(talk, "a")
    assert (talk.phase("a"), talk.told["a"].status.reason) == ("Failed", "NodePorts")


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


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_is_at_its_end_in_the_cluster_goes_down(phase: PodPhase) -> None:
    """Another host of the same name may have said so: nobody takes it back."""
    talk = Talk()
    talk.ready()
    talk.relist()
    talk.say(PodUpdate(op=PodOperation.ADD, source=API_SOURCE, pods=(pod("a"),)))
    talk.done("a", changed=True)
    talk.see(running("a"))
    talk.done("a")
    ended = msgspec.structs.replace(pod("a"), status=PodStatus(phase=phase))
    assert "terminating a" in talk.say(PodUpdate(op=PodOperation.RECONCILE, source=API_SOURCE, pods=(ended,)))
    talk.done("a", changed=True)
    assert talk.see(exited("a", 137)) == ["terminated a"]
    talk.done("a")
    assert talk.told["a"].status.phase in {"Failed", "Succeeded"}
