"""Waits of pods that are told: only what has lasted from one tick to the next, and its end."""

from __future__ import annotations

from ipc.link.messages.wait_reasons import WaitReason
from supervisor.pods.held_up import HeldUpPods
from supervisor.pods.next_step import Dispatch, Wait
from supervisor.pods.parts import PodParts
from supervisor.pods.record import PodRecord

SYNC = Dispatch()
PAUSED, WORKER = Wait(WaitReason.PAUSED), Wait(WaitReason.WORKER)


def pod(uid: str = "u") -> PodRecord:
    return PodRecord(uid, f"default/{uid}", None, "file", slot=2, row=0, parts=PodParts())


def told(pods: HeldUpPods) -> dict[str, str]:
    return {state.uid: state.reported_wait for state in pods.take_lasting()}


def test_a_wait_is_told_once_when_it_has_lasted_and_when_it_is_over() -> None:
    pods, state = HeldUpPods(), pod()
    pods.note(state, PAUSED)
    assert told(pods) == {}
    pods.note(state, PAUSED)
    assert told(pods) == {"u": "Paused"}
    assert told(pods) == {}
    pods.note(state, SYNC)
    assert told(pods) == {"u": ""}
    assert told(pods) == {}


def test_a_short_wait_is_never_told() -> None:
    pods, state = HeldUpPods(), pod()
    for _ in range(3):
        pods.note(state, PAUSED)
        pods.note(state, SYNC)
        assert told(pods) == {}
    for wait in (PAUSED, WORKER, PAUSED, WORKER):
        pods.note(state, wait)
        assert told(pods) == {}, "each reason is as old as itself"


def test_another_reason_takes_the_place_of_the_one_that_was_told() -> None:
    pods, state = HeldUpPods(), pod()
    pods.note(state, PAUSED)
    told(pods)
    assert told(pods) == {"u": "Paused"}
    pods.note(state, WORKER)
    assert told(pods) == {}
    assert told(pods) == {"u": "Worker"}


def test_waits_of_a_pod_that_has_nothing_to_do_are_none() -> None:
    pods, state = HeldUpPods(), pod()
    for reason in (WaitReason.SYNC, WaitReason.FINISHED, WaitReason.NEXT_SYNC):
        pods.note(state, Wait(reason))
        assert (state.wait, told(pods)) == (None, {})


def test_a_pod_that_is_forgotten_is_told_of_no_more() -> None:
    pods, state = HeldUpPods(), pod()
    pods.note(state, PAUSED)
    state.clear()
    assert (told(pods), told(pods)) == ({}, {})
