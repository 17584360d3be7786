"""Workers that are told to probe a pod and when, and what the master makes of what probes say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults, ProbeType
from supervisor.processes.worker_pool import API_SLOT, FIRST_POD_SLOT, NODE_SLOT
from supervisor.protocol.events import ProbeResultsRestored
from supervisor.protocol.source_updates import PodOperation
from tests.support.dialogue import POD_SLOT, Talk, absent, exited, pod, running

A, B = FIRST_POD_SLOT, FIRST_POD_SLOT + 1
STARTUP, LIVENESS, READINESS = ProbeType.STARTUP, ProbeType.LIVENESS, ProbeType.READINESS
SUCCESS, FAILURE = ProbeResult.SUCCESS, ProbeResult.FAILURE
ALL = (STARTUP, LIVENESS, READINESS)
PROBE = Probe(exec=ExecAction(command=("true",)), timeout_seconds=1, period_seconds=10)


def probed(uid: str, *probes: ProbeType, probe: Probe = PROBE, **more: Any) -> Pod:
    plain = pod(uid, **more)
    [main] = plain.spec.containers
    main = msgspec.structs.replace(main, **{f"{kind.value}_probe": probe for kind in probes or ALL})
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, containers=(main,)))


def renamed(status: RuntimePodStatus, id: str) -> RuntimePodStatus:
    """Another container in place of its main one."""
    [main] = status.containers
    return msgspec.structs.replace(status, containers=(msgspec.structs.replace(main, id=id),))


def at_rest(*probes: ProbeType, **settings: Any) -> Talk:
    """Pod ``a`` runs and is probed; nothing is in flight."""
    talk = Talk(**settings)
    talk.ready()
    talk.add(probed("a", *probes))
    talk.relist()
    talk.done("a", changed=True)
    talk.fall_due("a")
    talk.see(running("a"))
    talk.done("a")
    return talk


def state_of(talk: Talk) -> tuple[bool | None, bool, str]:
    """State of its container: started, ready; and the pod's condition Ready."""
    status = talk.told["a"].status
    [main] = status.container_statuses
    ready = next(condition.status for condition in status.conditions if condition.type == "Ready")
    return main.started, main.ready, ready


# --- who probes ---


def test_a_pod_is_probed_from_before_its_first_sync_and_looked_at_when_its_containers_change() -> None:
    talk = Talk()
    talk.ready()
    assert talk.add(probed("a")) == ["track a", "probe a", "observe a"]
    assert talk.relist() == ["sync a"]
    assert talk.done("a", changed=True) == ["observe a"]
    talk.fall_due("a")
    assert talk.see(running("a")) == ["sync a", "containers a"]
    assert talk.done("a") == []
    assert talk.see(running("a")) == []
    assert talk.see(renamed(running("a"), "another")) == ["sync a", "containers a"]


def test_a_pod_without_probes_costs_no_word() -> None:
    talk = Talk()
    talk.start("a")
    assert talk.probing == {}


def test_an_edit_is_told_and_one_that_takes_all_probes_away_ends_the_probing() -> None:
    talk = at_rest()
    assert "probe a" in talk.update(probed("a", READINESS))
    assert "stop probing a" in talk.update(pod("a"))
    assert talk.probing_stopped("a") == []


def test_a_pod_that_goes_down_is_probed_in_another_way_until_nothing_of_it_runs() -> None:
    talk = at_rest()
    assert talk.remove(probed("a")) == ["probe a (terminating)", "observe a"]
    assert talk.see(running("a")) == ["terminating a"]
    assert talk.done("a", changed=True) == ["observe a"]
    assert talk.see(exited("a")) == ["terminated a", "stop probing a"]
    talk.probing_stopped("a")
    talk.done("a", changed=True)
    assert talk.see(absent("a")) == ["untrack a"]


def test_a_pod_that_is_done_is_probed_no_more() -> None:
    talk = Talk()
    talk.ready()
    talk.add(probed("a", READINESS, policy="Never"))
    talk.relist()
    talk.done("a", changed=True)
    talk.fall_due("a")
    talk.see(running("a"))
    talk.done("a")
    assert "stop probing a" in talk.see(exited("a"))


def test_a_view_that_has_no_row_goes_along() -> None:
    talk = at_rest(rows=0)
    assert talk.see(renamed(running("a"), "another"), row=-1) == ["sync a", "probe a"]
    _, told = talk.probing["a"]
    assert told.row == -1
    assert told.status is not None
    assert told.status.containers[0].id == "another"
    talk.done("a")
    assert talk.see(renamed(running("a"), "another"), row=-1) == [], "another date is nothing new"


# --- who probes it next ---


def test_the_next_worker_is_told_what_the_dead_one_had_found_out() -> None:
    talk = at_rest()
    talk.verdict("a", STARTUP, SUCCESS)
    talk.verdict("a", READINESS, SUCCESS)
    assert state_of(talk) == (True, True, "True")
    assert talk.down(POD_SLOT) == []
    assert state_of(talk) == (True, True, "True"), "readiness outlives a worker"
    assert "probe a" in talk.up(POD_SLOT, 2)
    _, told = talk.probing["a"]
    assert told.probe_results == {"c-a": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}


def two_workers() -> Talk:
    """Pod a is at rest on A beside b; then both of B's go, and a or b has to move."""
    talk = Talk(workers=2, up=(NODE_SLOT, API_SLOT, A, B))
    talk.ready()
    talk.add(probed("a"), probed("b"))
    talk.relist()
    for uid in ("a", "b"):
        talk.done(uid, changed=True)
        talk.see(running(uid), row=int(uid == "b"))
        talk.done(uid)
    assert {uid: slot for uid, (slot, _) in talk.probing.items()} == {"a": A, "b": B}
    return talk


def test_when_a_pod_moves_its_old_worker_stops_before_the_new_one_begins() -> None:
    talk = two_workers()
    talk.resize(1)
    assert talk.tick() == [f"vacated {B}"]
    assert talk.slots["b"] == B
    assert talk.down(B, orderly=True) == ["probe b"], "it can be told no more: its end counts as its answer"
    assert talk.probing["b"][0] == A


def test_a_worker_that_stays_says_that_it_has_stopped() -> None:
    talk = at_rest()
    talk.add(probed("b"))
    talk.see(absent("b"), row=1)
    talk.done("b", changed=True)
    talk.see(running("b"), row=1)
    talk.done("b")
    talk.resize(2)
    talk.up(B)
    words = talk.tick()
    [moved] = [word.removeprefix("stop probing ") for word in words if word.startswith("stop probing")]
    assert not any(word.startswith("probe ") for word in words)
    assert talk.tick() == []
    talk.verdict(moved, READINESS, SUCCESS)
    assert talk.probing_stopped(moved) == [f"probe {moved}"]
    slot, told = talk.probing[moved]
    assert (slot, told.probe_results) == (B, {f"c-{moved}": ProbeResults(readiness=SUCCESS)})


def test_what_was_ready_stays_ready_over_a_restart_of_the_agent() -> None:
    before = at_rest()
    before.verdict("a", STARTUP, SUCCESS)
    before.verdict("a", READINESS, SUCCESS)
    known = before.loop.durable.probes.all_results()
    assert known == {"c-a": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}
    talk = Talk()
    talk.say(ProbeResultsRestored({**known, "long gone": ProbeResults(readiness=SUCCESS)}))
    talk.update(probed("a"), op=PodOperation.RESTORE)
    talk.relist(running("a"))
    assert state_of(talk) == (True, True, "True")
    assert talk.loop.durable.probes.all_results() == known


def test_what_was_found_before_the_manifest_is_remembered_too() -> None:
    talk = Talk()
    talk.say(ProbeResultsRestored({"c-a": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}))
    talk.relist(running("a"), row=-1)
    talk.add(probed("a"))
    assert state_of(talk) == (True, True, "True")


def test_what_was_restored_is_kept_until_podman_has_said_what_there_is() -> None:
    known = {"c-a": ProbeResults(startup=SUCCESS, readiness=SUCCESS)}
    talk = Talk()
    talk.say(ProbeResultsRestored(known))
    talk.update(probed("a"), op=PodOperation.RESTORE)
    assert talk.loop.durable.probes.all_results() == known, "another restart before Podman answers loses nothing"
    talk.relist(unseen=("a",))
    assert talk.loop.durable.probes.all_results() == known
    talk.relist()
    assert talk.loop.durable.probes.all_results() == {}


# --- what is made of verdicts ---


def test_readiness_shows_in_the_status_at_once_and_needs_no_worker() -> None:
    talk = at_rest(READINESS)
    assert state_of(talk) == (True, False, "False")
    assert talk.verdict("a", READINESS, SUCCESS) == []
    assert state_of(talk) == (True, True, "True")
    assert talk.verdict("a", READINESS, FAILURE) == []
    assert state_of(talk) == (True, False, "False")


@pytest.mark.parametrize(("probe", "result"), [(LIVENESS, FAILURE), (STARTUP, FAILURE), (STARTUP, SUCCESS)], ids=str)
def test_what_a_worker_has_to_act_on_syncs_the_pod_at_once_and_goes_along(
    probe: ProbeType, result: ProbeResult
) -> None:
    talk = at_rest()
    assert talk.verdict("a", probe, result) == ["observe a"]
    assert talk.see(running("a")) == ["sync a"]
    assert talk.syncs["a"].probe_results == {"c-a": ProbeResults(**{probe.value: result})}
    assert talk.verdict("a", probe, result) == [], "said again it is no news"


def test_started_follows_the_startup_probe_and_ready_both() -> None:
    talk = at_rest(STARTUP, READINESS)
    assert state_of(talk) == (False, False, "False")
    talk.verdict("a", STARTUP, SUCCESS)
    assert state_of(talk) == (True, False, "False")
    talk.verdict("a", READINESS, SUCCESS)
    assert state_of(talk) == (True, True, "True")


def test_verdicts_go_with_their_container() -> None:
    talk = at_rest()
    talk.verdict("a", LIVENESS, FAILURE)
    talk.verdict("a", READINESS, SUCCESS)
    talk.see(renamed(running("a"), "another"))
    assert talk.syncs["a"].probe_results == {}
    assert state_of(talk)[1] is False


def test_a_verdict_of_a_probe_that_is_gone_kills_nobody() -> None:
    talk = at_rest()
    talk.verdict("a", LIVENESS, FAILURE)
    talk.verdict("a", READINESS, SUCCESS)
    talk.update(probed("a", READINESS))
    talk.see(running("a"))
    assert talk.syncs["a"].probe_results == {"c-a": ProbeResults(readiness=SUCCESS)}
    talk.done("a")
    assert talk.verdict("a", LIVENESS, FAILURE) == []
    assert talk.verdict("nobody", LIVENESS, FAILURE) == []


def test_the_end_of_a_pod_takes_no_orders_from_probes() -> None:
    talk = at_rest()
    talk.remove(probed("a"))
    talk.see(running("a"))
    assert talk.verdict("a", LIVENESS, FAILURE) == []
    talk.done("a", cancelled=True)
    assert talk.see(running("a")) == ["terminating a"]
