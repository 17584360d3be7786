"""Answers of the sync loop: one pod's way to its syncs (upstream: syncLoopIteration, pod_workers.go)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.host.clock import Instant
from ipc.k8s.api.v1.container import Container, ContainerRestartRule, ContainerRestartRuleOnExitCodes
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.messages.node_worker import ObservationFailed
from ipc.link.messages.pod_worker import BeginningKept, ContainerBegins, SyncEffects, SyncResult
from ipc.link.messages.sync_error import SyncError
from supervisor.protocol.commands import RestsOn, Send
from supervisor.protocol.events import BeginningRequest
from supervisor.protocol.source_updates import PodOperation
from tests.support.dialogue import POD_SLOT, PULL, STARTED, WALL, Talk, absent, exited, pod, restless, running

# --- a pod begins ------------------------------------------------------------------------------------------------


def test_a_pod_comes_up() -> None:
    talk = Talk()
    assert talk.add("a") == ["track a", "observe a"], "nothing is dispatched before somebody has looked"
    assert talk.phase("a") == "Pending"
    assert talk.relist() == ["sync a"], "the relist did not show it: it does not exist"
    assert talk.syncs["a"].status == msgspec.structs.replace(absent("a"), observed_at=talk.mono - 0.5)
    assert talk.done("a", changed=True) == ["observe a"], "something was touched"
    assert talk.see(running("a")) == [], "it is what that sync has made"
    assert talk.phase("a") == "Running"
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


@pytest.mark.parametrize("op", [PodOperation.RESTORE, PodOperation.UPDATE])
def test_whatever_names_an_unknown_pod_adds_it(op: PodOperation) -> None:
    talk = Talk()
    talk.relist()
    assert talk.update("a", op=op) == ["track a", "sync a"]


def test_the_status_of_an_unknown_pod_wants_nothing() -> None:
    talk = Talk()
    talk.relist()
    assert talk.update("a", op=PodOperation.RECONCILE) == []


# --- no acting on an old view ------------------------------------------------------------------------------------


def test_after_a_sync_only_a_newer_view_counts() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.update(pod("a", image="v2")) == ["observe a"]
    assert talk.see(running("a"), age_s=2.5) == ["observe a"], "that look began before the last sync ended"
    assert talk.see(running("a")) == ["sync a"]
    assert talk.syncs["a"].min_observed_at < talk.mono - 1.0


def test_what_changed_since_a_sync_that_did_nothing_needs_no_newer_view() -> None:
    talk = Talk()
    talk.start("a")  # its last sync has found nothing to do
    assert talk.see(exited("a"), age_s=2.5) == ["sync a"], "an end that was noted under the date of the view before it"
    assert talk.syncs["a"].min_observed_at < talk.mono - 2.5
    talk.done("a", changed=True)
    assert talk.see(running("a"), age_s=1.5) == ["observe a"], "it may be from before the act"
    assert talk.see(running("a")) == ["sync a"]


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


def test_a_pod_that_cannot_be_looked_at_says_so() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.say(ObservationFailed(uid="a", message="inspect: broken")) == []
    talk.say(ObservationFailed(uid="unknown", message="inspect: broken"))
    assert talk.events == ["FailedSync a"]


# --- when it is due again ----------------------------------------------------------------------------------------


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
    talk.start(restless("a"))
    talk.tick(after_s=100.0)
    talk.see(running("a"))
    talk.done("a", error=error, results=results)
    assert between_s[0] <= due_in_s(talk, "a") <= between_s[1]


def test_after_a_sync_that_found_nothing_to_do_the_next_one_needs_no_look() -> None:
    talk = Talk()
    talk.start(restless("a"))
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
    talk.start(restless("a"))
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
    talk.done("a", results=(msgspec.structs.replace(PULL, error=SyncError.CRASH_LOOP_BACK_OFF, retry_at=retry_at),))
    assert due_in_s(talk, "a") == due_s
    assert "CrashLoopBackOff" in talk.told["a"].next_try["main"]


def test_a_stale_view_is_answered_by_a_fresh_look() -> None:
    talk = Talk()
    talk.start("a")
    talk.update(pod("a", image="v2"))
    talk.see(running("a"))
    assert talk.done("a", error=SyncError.STALE_VIEW) == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]
    assert talk.done("a") == []
    assert talk.tick() == [], "it was due once, not twice"


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
    gone = tuple(container.id for container in triggered.containers)
    talk.done("a", changed=True, effects=SyncEffects(removed=gone))
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


def test_a_container_begins_once_the_record_is_on_the_disk() -> None:
    t = Talk()
    t.start("a")
    t.tick()
    t.see(absent("a"))
    run = RuntimeContainerStatus(id="c", name="main", attempt=0, state=ContainerState.RUNNING)
    asked = BeginningRequest(POD_SLOT, ContainerBegins(uid="a", container=run))
    [send] = t.loop.handle(asked, Instant(mono=t.mono, wall=WALL))
    assert isinstance(send, Send)
    assert (send.slot, send.message) == (POD_SLOT, BeginningKept(uid="a", id="c"))
    assert send.rests_on == RestsOn(ends=t.loop.durable.ended_containers.urgent_version)
    assert "c" in [known.id for known in t.loop.durable.ended_containers.everything()["a"].runs]
    unknown = BeginningRequest(POD_SLOT, ContainerBegins(uid="gone", container=run))
    [send] = t.loop.handle(unknown, Instant(mono=t.mono, wall=WALL))
    assert isinstance(send, Send)
    assert send.message == BeginningKept(uid="gone", id="c"), "a pod that goes holds nobody up"
