"""How a pod goes down when it is asked twice, sooner, or in the middle of something (PW-10 and the TERM rows)."""

from __future__ import annotations

import msgspec
import pytest

from ipc.host.clock import rfc3339
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.link.messages.pod_worker import SyncAction, SyncResult, WorkType
from ipc.link.messages.sync_error import SyncError
from supervisor.protocol.source_updates import PodOperation
from tests.support.dialogue import POD_SLOT, WALL, Talk, absent, exited, pod, running


def stopping(talk: Talk, grace_s: int = 30) -> None:
    """``a`` runs, was removed, and is being stopped."""
    talk.start(pod("a", grace_s=grace_s))
    talk.remove("a")
    assert talk.see(running("a")) == ["terminating a"]


def completed(talk: Talk) -> None:
    """``a`` has come to its end by itself, and nothing of it is left to do."""
    talk.start(pod("a", policy="Never"))
    talk.see(exited("a"))
    talk.done("a")
    assert talk.see(exited("a")) == []


# --- asked again ---


@pytest.mark.parametrize(
    ("asked_s", "cancels", "grace_s"),
    [
        ((), 0, 30),
        ((10,), 1, 10),
        ((30,), 0, 30),
        ((60,), 0, 30),
        ((10, 20), 1, 10),
        ((10, 10), 1, 10),
        ((20, 10), 2, 10),
        ((1, 1), 1, 1),
    ],
)
def test_a_deletion_that_is_asked_again_only_shortens(asked_s: tuple[int, ...], cancels: int, grace_s: int) -> None:
    """The stop that is under way is broken off, and asked for again with what is left."""
    talk = Talk()
    stopping(talk)
    words = [word for asked in asked_s for word in talk.kill("a", asked)]
    assert words == ["cancel a"] * cancels
    talk.done("a", cancelled=bool(cancels))
    talk.see(running("a"))
    assert talk.syncs["a"].kind is WorkType.TERMINATING
    assert talk.syncs["a"].grace_period_s == grace_s


def test_a_second_removal_of_the_same_kind_disturbs_nothing() -> None:
    talk = Talk()
    stopping(talk)
    assert talk.remove("a") == []
    assert talk.update("a", op=PodOperation.DELETE) == []


def test_a_shorter_grace_counts_for_the_next_try_when_none_is_under_way() -> None:
    talk = Talk()
    stopping(talk)
    failed = SyncResult(action=SyncAction.KILL_CONTAINER, target="main", error=SyncError.KILL_CONTAINER, message="busy")
    talk.done("a", results=(failed,), error=SyncError.TIMEOUT, changed=True)
    assert talk.kill("a", 2) == []
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 2


# --- in the middle of something ---


def test_a_deletion_breaks_off_a_start_or_the_wait_for_an_image() -> None:
    talk = Talk()
    talk.ready()
    talk.relist()
    assert talk.add("a") == ["track a", "sync a"]
    assert talk.remove("a") == ["cancel a"]
    assert talk.done("a", cancelled=True, changed=True) == ["observe a"]
    assert talk.see(running("a")) == ["terminating a"], "what it had started goes within its grace period"
    assert talk.syncs["a"].remove


def test_a_deletion_before_anything_was_made_leaves_nothing_to_stop() -> None:
    talk = Talk()
    talk.ready()
    talk.relist()
    talk.add("a")
    talk.remove("a")
    talk.done("a", cancelled=True)
    assert talk.see(absent("a")) == ["terminated a"]
    talk.done("a")
    assert talk.see(absent("a")) == ["untrack a"]


def test_a_worker_that_dies_while_it_stops_a_pod_with_a_shortened_grace_changes_nothing() -> None:
    talk = Talk()
    stopping(talk)
    talk.kill("a", 3)
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 3


def test_a_completed_pod_that_is_removed_while_its_sandbox_is_stopped_is_not_stopped_twice() -> None:
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    half_down = msgspec.structs.replace(running("a"), containers=exited("a").containers)
    assert talk.see(half_down) == ["terminating a"]
    assert talk.remove("a") == []
    talk.done("a")
    assert talk.see(exited("a")) == ["terminated a"]
    assert talk.syncs["a"].remove


# --- what is told of it ---


def test_a_deleted_pod_says_when_that_was_and_runs_until_it_is_down() -> None:
    talk = Talk()
    stopping(talk)
    told = talk.told["a"]
    assert told.deletion_timestamp
    assert told.status.phase == "Running"
    talk.done("a")
    talk.see(exited("a", 143))
    assert talk.told["a"].deletion_timestamp == told.deletion_timestamp
    assert talk.phase("a") == "Failed", "nothing of it can run any more"


def test_a_completed_pod_was_deleted_when_it_was_and_not_when_it_was_done() -> None:
    talk = Talk()
    completed(talk)
    assert talk.told["a"].deletion_timestamp == ""
    talk.tick(after_s=1000.0)
    talk.remove("a")
    assert talk.told["a"].deletion_timestamp == rfc3339(WALL + talk.mono)


def test_a_container_that_vanished_on_the_way_down_has_an_end_too() -> None:
    talk = Talk()
    stopping(talk)
    talk.done("a")
    talk.see(msgspec.structs.replace(exited("a"), containers=()))
    [main] = talk.told["a"].status.container_statuses
    assert main.state.terminated is not None
    assert (main.state.terminated.reason, main.state.terminated.exit_code) == ("ContainerStatusUnknown", 137)


# --- orphans ---


def orphaned(talk: Talk) -> None:
    """``a`` runs, no source wants it, and it is being stopped."""
    talk.ready()
    talk.relist(running("a"), row=-1)
    assert "track a" in talk.keep_house()
    assert "terminating a" in talk.relist(running("a"), row=-1)


def test_an_orphan_goes_by_its_labels_until_somebody_says_less() -> None:
    talk = Talk()
    orphaned(talk)
    assert talk.syncs["a"].grace_period_s is None, "its labels say"
    assert talk.is_going_down("a"), "it has the name that is on its labels"
    assert talk.kill("a", 0) == ["cancel a"]
    talk.done("a", cancelled=True)
    talk.relist(running("a"), row=-1)
    again = talk.syncs["a"]
    assert (again.kind, again.grace_period_s) == (WorkType.TERMINATING, 1)
    assert talk.kill("a", 5) == []


def test_a_container_of_unknown_state_has_to_be_stopped_too() -> None:
    talk = Talk()
    stopping(talk)
    talk.done("a")
    gone: RuntimePodStatus = exited("a")
    lost = msgspec.structs.replace(gone.containers[0], state=ContainerState.UNKNOWN)
    assert talk.see(msgspec.structs.replace(gone, containers=(lost,))) == ["terminating a"]


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
    completed(talk)
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.phase("a") == "Succeeded", "a terminal phase is never left"


def test_an_update_does_not_revive_a_completed_pod() -> None:
    talk = Talk()
    completed(talk)
    assert talk.update(pod("a", policy="Never", image="v2")) == []
