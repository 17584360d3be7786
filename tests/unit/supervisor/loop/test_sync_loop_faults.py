"""Unexpected errors in the master's own work on one pod: that pod is told of, and tried again; others do not notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from supervisor.desired import pod_admission
from supervisor.loop.requeue import BACK_OFF_PERIOD_S
from supervisor.managers import container_gc
from supervisor.managers.container_gc import collection_failures, dead_of_each
from supervisor.managers.object_delivery import ObjectDelivery
from supervisor.podcontrol.pod_reporter import RETRY_S
from supervisor.record import status_manager
from tests.support.dialogue import STARTED, Talk, absent, running


class Bug:
    """In one function, for the pod ``bad``, as long as it is there."""

    def __init__(self) -> None:
        self.is_there = True

    def put(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, is_about_it: Callable[..., bool]) -> None:
        original = getattr(owner, name)

        def buggy(*args: Any, **kwargs: Any) -> Any:
            if self.is_there and is_about_it(*args):
                raise RecursionError("nobody expected that")
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, buggy)


@pytest.fixture
def bug() -> Bug:
    return Bug()


@pytest.fixture
def talk() -> Talk:
    made = Talk()
    made.ready()
    made.relist()
    return made


def test_a_status_that_cannot_be_generated_is_its_pods_and_is_tried_again(
    talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug.put(monkeypatch, status_manager, "generate_pod_status", lambda given, _: given.pod.metadata.uid == "bad")
    talk.add("bad", "good")
    talk.relist()
    assert {"bad", "good"} <= talk.syncs.keys()
    for uid in ("bad", "good"):
        talk.done(uid, results=(STARTED,), changed=True)
    talk.see(running("bad"), running("good"))
    assert talk.phase("good") == "Running"
    assert "bad" not in talk.told
    bug.is_there = False
    talk.tick(RETRY_S + 1.0)
    assert talk.phase("bad") == "Running"


def test_it_is_said_once_in_an_event(talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.put(monkeypatch, status_manager, "generate_pod_status", lambda given, _: given.pod.metadata.uid == "bad")
    talk.add("bad")
    talk.relist()
    for _ in range(3):
        talk.tick(RETRY_S + 1.0)
    (said,) = [line for line in talk.logs if "unexpected RecursionError" in line]
    assert said == "default/bad: FailedSync: error determining status: unexpected RecursionError"
    assert talk.events == ["FailedSync bad"]


def test_a_pod_of_which_nobody_can_tell_goes_all_the_same(
    talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug.put(monkeypatch, status_manager, "generate_pod_status", lambda given, _: given.pod.metadata.uid == "bad")
    talk.add("bad")
    talk.relist()
    talk.done("bad", results=(STARTED,), changed=True)
    talk.fall_due("bad")
    talk.see(running("bad"))
    talk.done("bad")
    talk.remove("bad")
    assert talk.see(running("bad")) == ["terminating bad"]
    talk.done("bad", changed=True)
    assert talk.see(absent("bad")) == ["terminated bad"]
    talk.done("bad")
    talk.see(absent("bad"))
    assert not talk.is_going_down("bad")


def test_a_pod_whose_admission_fails_is_rejected(talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.put(monkeypatch, pod_admission, "rejection", lambda pod, *_: pod.metadata.uid == "bad")
    talk.add("bad", "good")
    assert any("UnexpectedAdmissionError" in line for line in talk.logs)
    assert talk.phase("bad") == "Failed"
    talk.relist()
    assert "good" in talk.syncs


def test_a_delivery_that_fails_holds_up_its_pod_alone_and_is_tried_again(
    talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug.put(monkeypatch, ObjectDelivery, "load", lambda _, state, __: state.uid == "bad")
    talk.add("bad", "good")
    talk.relist()
    assert set(talk.syncs) == {"good"}
    assert any("cannot be delivered" in line for line in talk.logs)
    bug.is_there = False
    talk.tick(BACK_OFF_PERIOD_S + 1.0)
    assert "bad" in talk.syncs


def test_a_delivery_that_fails_for_an_orphan_is_tried_again_too(
    talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    bug.put(monkeypatch, ObjectDelivery, "load", lambda _, state, __: state.uid == "bad")
    talk.see(running("bad"))
    talk.keep_house()
    assert talk.see(running("bad")) == []
    assert talk.events == ["FailedSync bad"]
    bug.is_there = False
    assert talk.tick(BACK_OFF_PERIOD_S + 1.0) == ["terminating bad"]


def test_dead_containers_of_a_pod_at_which_that_fails_stay_and_others_go(
    bug: Bug, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = {uid: RuntimePodStatus(uid=uid) for uid in ("bad", "good")}
    asked: list[set[str]] = []

    def dead(views: Any, *_: Any) -> dict[str, tuple[str, ...]]:
        asked.append(set(views))
        if "bad" in views:
            raise ValueError
        return {"good": ("1",)}

    monkeypatch.setattr(container_gc, "dead_beyond_maximum", dead)
    found, faults = dead_of_each(views, ("bad", "good"), GcPolicy(), 0.0)
    assert (found, list(faults), asked[-1]) == ({"good": ("1",)}, ["bad"], {"good"})
    (event,) = collection_failures("node", faults)
    assert (event.reason, "bad" in event.message) == ("ContainerGCFailed", True)


def test_an_agent_with_a_bug_in_one_pod_syncs_all_others(talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.put(monkeypatch, status_manager, "generate_pod_status", lambda given, _: given.pod.metadata.uid == "bad")
    talk.add("bad", *(f"p{number}" for number in range(20)))
    talk.relist()
    assert len(talk.syncs) == 21


def test_a_pod_whose_warnings_fail_begins_without_them(talk: Talk, bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug.put(monkeypatch, pod_admission, "admitted", lambda pod, _: pod.metadata.uid == "bad")
    talk.add("bad")
    talk.relist()
    assert "bad" in talk.syncs
