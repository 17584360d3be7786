"""Critical pods that find no room: who gives way, what is told, and when they start."""

from __future__ import annotations

from typing import Any

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_failure import PodFailure
from supervisor.desired.pod_admission import PREEMPTED
from supervisor.protocol.events import EvictionsRestored
from tests.support.dialogue import Talk, absent, exited, pod, running

CRITICAL = 2_000_000_000


def ranked(uid: str, priority: int, **fields: Any) -> Pod:
    found = pod(uid, **fields)
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, priority=priority))


def critical(uid: str, **fields: Any) -> Pod:
    return ranked(uid, CRITICAL, **fields)


def full(*pods: Pod | str, max_pods: int = 2) -> Talk:
    talk = Talk(max_pods=max_pods)
    talk.start(*pods)
    return talk


def test_a_critical_pod_waits_until_another_has_given_way() -> None:
    talk = full(ranked("a", 5), "b")
    said = talk.add(critical("c"))
    assert "sync c" not in said
    assert talk.events == ["Preempting b"], "of two that serve alike the one with the lower priority"
    assert (talk.phase("c"), talk.phase("b")) == ("Pending", "Running")
    talk.relist(absent("c"), running("a"), running("b"))
    assert set(talk.syncs) == {"a", "b"}, "not while anything of the other runs"
    assert talk.syncs["b"].evicted == PREEMPTED
    talk.done("b")
    talk.see(exited("b", 137))
    assert talk.see(absent("c")) == ["sync c"] or "c" in talk.syncs
    status = talk.told["b"].status
    assert (status.phase, status.reason, status.message) == ("Failed", "Preempting", PREEMPTED.message)
    target = next(c for c in status.conditions if c.type == "DisruptionTarget")
    assert (target.status, target.reason, target.message) == ("True", "TerminationByKubelet", PREEMPTED.disruption)
    assert talk.phase("a") == "Running"


def test_no_pod_that_is_not_critical_pushes_another_out() -> None:
    talk = full("a", "b")
    talk.add(ranked("c", CRITICAL - 1))
    assert (talk.phase("c"), talk.told["c"].status.reason) == ("Failed", "OutOfpods")
    assert talk.phase("a") == talk.phase("b") == "Running"


def test_critical_pods_of_its_rank_stay() -> None:
    talk = full(critical("a"), critical("b"))
    talk.add(critical("c"))
    status = talk.told["c"].status
    assert (status.phase, status.reason) == ("Failed", "UnexpectedAdmissionError")
    assert "no set of running pods found to reclaim resources: [(res: pods, q: 1), ]" in status.message
    talk.add(ranked("d", CRITICAL + 1000))
    assert talk.events[-1] in ("Preempting a", "Preempting b"), "one of a higher rank has its place"


def test_what_no_others_end_can_mend_ends_nobody() -> None:
    talk = Talk(max_pods=2)
    talk.add(pod("a", host_port=8080), "b")
    talk.add(critical("c", host_port=8080))
    assert talk.events == ["NodePorts c"]


def test_the_next_critical_pod_needs_a_victim_of_its_own() -> None:
    talk = full("a", "b")
    talk.add(critical("c"), critical("d"))
    assert sorted(talk.events) == ["Preempting a", "Preempting b"]


def test_a_victim_that_does_not_end_is_not_waited_for_for_ever() -> None:
    talk = full(pod("a", grace_s=0), max_pods=1)
    talk.add(critical("c"))
    talk.relist(absent("c"), running("a"))
    talk.tick(after_s=60.0)
    talk.see(absent("c"))
    assert "c" in talk.syncs


def test_one_that_was_evicted_before_pushes_nobody_out() -> None:
    talk = Talk(max_pods=1)
    talk.say(EvictionsRestored({"c": PodFailure(reason="Evicted", message="too much")}))
    talk.add("a")
    talk.add(critical("c"))
    assert (talk.events, talk.phase("a")) == ([], "Pending")


def test_one_that_was_evicted_before_takes_no_place() -> None:
    talk = Talk(max_pods=1)
    talk.say(EvictionsRestored({"a": PREEMPTED}))
    talk.add("a")
    talk.add("b")
    assert talk.events == []
