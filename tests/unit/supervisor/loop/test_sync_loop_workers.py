"""Answers of the sync loop when processes come and go: one actor per pod, and nothing forgotten."""

from __future__ import annotations

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.base import EventReport, PullProgress
from ipc.link.messages.event_reasons import EventType
from ipc.link.messages.pod_worker import PullFailure, SyncAction, SyncResult
from ipc.link.messages.sync_error import SyncError
from supervisor.processes.worker_pool import API_SLOT, NODE_SLOT
from supervisor.protocol.events import SettingsChanged
from supervisor.protocol.source_updates import PodOperation
from tests.support.dialogue import POD_SLOT, Talk, absent, exited, pod, running

# --- pod workers -------------------------------------------------------------------------------------------------


def test_nothing_goes_to_a_worker_that_is_not_there_yet() -> None:
    talk = Talk(up=(NODE_SLOT, API_SLOT))
    talk.relist()
    assert talk.add("a", "b") == ["track a", "track b"]
    assert talk.up(POD_SLOT) == ["sync a", "sync b"]


def test_after_a_death_the_pod_waits_for_a_look_newer_than_it_and_goes_to_the_next_incarnation() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    assert talk.down(POD_SLOT) == ["observe a"]
    assert talk.up(POD_SLOT, 2) == []
    assert talk.see(running("a"), age_s=5.0) == ["observe a"], "that look began while the dead one still acted"
    assert talk.see(running("a")) == ["sync a"]
    assert talk.syncs["a"].incarnation == 2


def test_a_view_that_comes_before_the_next_incarnation_is_kept_for_it() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    talk.down(POD_SLOT)
    assert talk.see(running("a")) == []
    assert talk.up(POD_SLOT, 2) == ["sync a"]


def test_an_idle_pod_does_not_notice_a_death() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.down(POD_SLOT) == []
    assert talk.up(POD_SLOT, 2) == []
    assert talk.update(pod("a", image="v2")) == ["observe a"]
    talk.see(running("a"))
    assert talk.syncs["a"].incarnation == 2


def test_a_pod_that_restarts_nothing_is_not_done_when_a_worker_died_while_it_replaced_a_container() -> None:
    """Between the end of the old container and the start of the new one."""
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    talk.update(pod("a", policy="Never", image="v2"))
    talk.see(running("a"))
    talk.down(POD_SLOT)
    half_way = msgspec.structs.replace(running("a"), containers=exited("a", 143).containers)
    talk.see(half_way)
    assert talk.phase("a") == "Running"
    [main] = talk.told["a"].status.container_statuses
    assert main.state.waiting is not None
    assert main.last_state.terminated is not None
    assert talk.up(POD_SLOT, 2) == ["sync a"], "it goes on"


def with_hostname(name: str) -> Pod:
    made = pod("a", policy="Never")
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, hostname=name))


def test_a_pod_that_restarts_nothing_is_not_done_when_a_worker_died_while_it_replaced_the_sandbox() -> None:
    """Between the end of the old sandbox and the start of the new one."""
    talk = Talk()
    talk.start(pod("a", policy="Never"))
    talk.update(with_hostname("other"))
    talk.see(running("a"))
    talk.down(POD_SLOT)
    talk.see(exited("a", 143))
    assert talk.phase("a") == "Running"
    assert talk.up(POD_SLOT, 2) == ["sync a"], "it goes on"


def test_a_pod_that_is_done_does_not_run_again_for_the_next_agent_because_it_was_edited() -> None:
    talk = Talk()
    talk.ready()
    talk.add(with_hostname("other"))
    talk.relist(exited("a"))
    assert talk.phase("a") == "Succeeded"


def test_a_late_answer_of_the_dead_changes_nothing() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    first = talk.syncs["a"]
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    talk.see(absent("a"))
    stale = {"generation": first.generation, "incarnation": first.incarnation}
    assert talk.done("a", changed=True, **stale) == []
    assert talk.done("a", changed=True, generation=first.generation) == []
    assert talk.done("a", changed=True) == ["observe a"]


def test_a_termination_survives_the_death_of_who_carried_it_out() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.see(running("a"))
    talk.kill("a", 5)
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.syncs["a"].grace_period_s == 5


def test_a_removal_whose_worker_died_is_not_believed() -> None:
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    assert talk.see(exited("a")) == ["terminated a"]
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    assert talk.see(absent("a")) == ["terminated a"], "its containers are gone; are its logs?"
    talk.done("a")
    assert talk.see(absent("a")) == ["untrack a"]


# --- the node worker ---------------------------------------------------------------------------------------------


def test_the_next_node_worker_learns_every_pod_and_what_its_relist_may_not_know() -> None:
    talk = Talk()
    talk.start("a", "b")
    talk.update(pod("b", image="v2"))
    talk.down(NODE_SLOT)
    assert talk.add("c") == ["sync c"], "the last relist did not show it"
    talk.done("c", changed=True)
    assert talk.up(NODE_SLOT, 2) == ["track a", "track b", "track c", "observe c"]


def test_pods_wait_while_nobody_can_look() -> None:
    talk = Talk(up=(API_SLOT, POD_SLOT))
    assert talk.add("a") == []
    assert talk.up(NODE_SLOT) == ["track a"], "it begins with a relist"
    assert talk.relist() == ["sync a"]


def test_what_the_last_node_worker_saw_stays_known() -> None:
    talk = Talk()
    talk.start("a")
    talk.down(NODE_SLOT)
    assert talk.phase("a") == "Running"
    talk.up(NODE_SLOT, 2)
    assert talk.see(running("a")) == []
    assert talk.update(pod("a", image="v2")) == ["sync a"]


# --- the API server ----------------------------------------------------------------------------------------------


def test_a_new_api_server_gets_everything_and_then_the_word_that_this_was_all() -> None:
    talk = Talk()
    talk.start(pod("a", host_port=8080))
    talk.add(pod("b", host_port=8080))
    known = dict(talk.told)
    talk.down(API_SLOT)
    talk.told.clear()
    talk.events.clear()
    assert talk.up(API_SLOT, 2) == ["feed synced"]
    assert talk.told == known
    assert talk.events == ["NodePorts b"]


def test_without_an_api_server_nothing_stops_and_nothing_is_lost() -> None:
    talk = Talk(up=(NODE_SLOT, POD_SLOT))
    talk.start("a")
    assert talk.told == {}
    talk.up(API_SLOT)
    assert talk.phase("a") == "Running"


def test_a_worker_s_event_reaches_the_api_server() -> None:
    talk = Talk()
    report = EventReport(
        uid="a", namespace="default", name="a", type=EventType.NORMAL, reason="Pulled", message="there"
    )
    assert talk.say(report) == []
    assert talk.events == ["Pulled a"]


# --- rows --------------------------------------------------------------------------------------------------------


def test_a_pod_without_a_row_travels_in_messages_and_a_relist_that_does_not_show_it_shows_it_gone() -> None:
    talk = Talk(rows=1)
    talk.relist()
    assert talk.add("a", "b") == ["track a", "sync a", "sync b"], "nobody can track a pod without a row"
    talk.done("b", changed=True)
    talk.fall_due("b")
    assert talk.see(running("b"), row=-1) == ["sync b"]
    assert talk.syncs["b"].status is not None
    talk.done("b")
    assert talk.relist(running("b"), row=-1) == []
    assert talk.phase("b") == "Running"
    assert talk.relist() == ["sync b"]
    assert talk.syncs["b"].status == msgspec.structs.replace(absent("b"), observed_at=talk.mono - 0.5)


def test_a_row_is_given_back() -> None:
    talk = Talk(rows=1)
    talk.start("a")
    talk.remove("a")
    assert talk.add("b") == ["sync b"]
    talk.see(exited("a"))
    talk.done("a", changed=True)
    assert talk.see(absent("a")) == ["untrack a"]
    assert talk.add("c") == ["track c", "sync c"]
    assert talk.syncs["c"].uid == "c"


def test_an_orphan_that_vanished_by_itself_is_not_remembered() -> None:
    talk = Talk()
    talk.relist(running("x"), row=-1)
    talk.relist()
    talk.ready()
    assert talk.keep_house() == []
    assert talk.add("x") == ["track x", "sync x"]
    status = talk.syncs["x"].status
    assert status is not None
    assert status.is_empty()


# --- the same looks the same -------------------------------------------------------------------------------------


def test_a_successor_whose_first_sync_changes_nothing_waits_for_its_back_off() -> None:
    """Nothing was made, so every look says *unchanged*; that answers too."""
    talk = Talk()
    talk.start("a")
    talk.remove("a")
    talk.see(exited("a"))
    talk.done("a", changed=True)
    talk.see(absent("a"))
    assert talk.add("a") == ["track a", "sync a"]
    failed = SyncResult(action=SyncAction.START_CONTAINER, target="main", error=SyncError.IMAGE_PULL)
    assert talk.done("a", results=(failed,)) == []
    assert talk.tick(after_s=20.0) == ["observe a"]
    assert talk.see(absent("a")) == ["sync a"]


def test_the_order_of_commands_does_not_depend_on_anything_but_the_events() -> None:
    names = [f"pod-{n}" for n in range(20)]
    talk = Talk(rows=20)
    talk.add(*names)
    assert talk.relist() == [f"sync {name}" for name in sorted(names)]


def test_new_settings_count_from_now_on() -> None:
    talk = Talk(max_pods=1)
    talk.start("a")
    talk.say(SettingsChanged(msgspec.structs.replace(talk.settings, max_pods=2)))
    assert talk.add("b") == ["track b", "sync b"]
    talk.update("c", op=PodOperation.ADD)
    assert talk.phase("c") == "Failed"


# --- pulls -------------------------------------------------------------------------------------------------------


def test_pulls_go_to_the_node_worker_and_their_end_to_who_waits() -> None:
    talk = Talk()
    assert talk.want("a", "x") == ["pull x"]
    assert talk.want("b", "x") == []
    assert talk.say(PullProgress(reference="x", words="copying")) == ["PullProgress x"]
    assert talk.pulled("x") == ["PullEnded x"]
    assert talk.want("a", "x") == ["pull x"]
    assert talk.abandon("a", "x") == ["cancel pull x"]


def test_a_pull_waits_for_the_node_worker_and_begins_anew_with_the_next_one() -> None:
    talk = Talk(up=(API_SLOT, POD_SLOT))
    assert talk.want("a", "x") == ["PullProgress x"]
    assert talk.up(NODE_SLOT) == ["pull x"]
    assert talk.down(NODE_SLOT) == []
    assert talk.up(NODE_SLOT, 2) == ["pull x"]


def test_a_pull_of_a_dead_worker_is_adopted_or_broken_off() -> None:
    talk = Talk()
    talk.want("a", "x")
    assert talk.down(POD_SLOT) == []
    talk.up(POD_SLOT, 2)
    assert talk.want("a", "x") == []
    assert talk.tick(after_s=60.0) == []
    talk.down(POD_SLOT)
    assert talk.tick(after_s=60.0) == ["cancel pull x"]


def test_the_back_off_of_pulls_outlives_the_worker() -> None:
    talk = Talk()
    talk.relist()
    talk.add("a")
    failure = PullFailure(image="x", backoff_s=20.0, updated_at=7.0, message="no")
    talk.done("a", pull_failures=(failure,), changed=True)
    talk.see(absent("a"))
    assert talk.syncs["a"].pull_failures == (failure,)
    talk.down(POD_SLOT)
    talk.up(POD_SLOT, 2)
    talk.see(absent("a"))
    assert (talk.syncs["a"].incarnation, talk.syncs["a"].pull_failures) == (2, (failure,))
    talk.done("a", changed=True)
    talk.fall_due("a")
    talk.see(running("a"))
    assert not talk.syncs["a"].pull_failures, "the last sync has forgotten it"
