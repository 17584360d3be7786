"""Next step of a pod: what it waits for, in which order reasons count, and that none is without an end."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.host.clock import Instant
from ipc.link.messages.pod_worker import WorkType
from ipc.link.messages.wait_reasons import HELD_UP, IDLE, WORDS, NextStep, WaitReason
from supervisor.pods.next_step import OF_OBJECTS, Dispatch, Standing, Wait, next_step, shown

DUE = Standing(phase=WorkType.SYNC, idle=None, has_fresh_view=True)
CHANGES: dict[WaitReason, dict[str, object]] = {
    **{reason: {"idle": reason} for reason in IDLE},
    WaitReason.OBSERVATION: {"has_fresh_view": False},
    WaitReason.ADMISSION: {"lacks_admission": True},
    WaitReason.DEVICES: {"lacks_devices": True},
    WaitReason.PAUSED: {"is_paused": True},
    WaitReason.WORKER: {"has_worker": False},
    WaitReason.ISOLATION: {"isolated_until": 70.0},
    WaitReason.SOLO_SYNC: {"awaits_solo_sync": True},
    WaitReason.ROOM: {"objects": WaitReason.ROOM},
    WaitReason.SOURCES: {"objects": WaitReason.SOURCES},
    WaitReason.FAULT: {"objects": WaitReason.FAULT},
}
"""Changes that make a pod that is due wait for each reason, and for nothing else."""
OF_STARTS = (WaitReason.ADMISSION, WaitReason.DEVICES, WaitReason.PAUSED)


def standing(*reasons: WaitReason, **more: object) -> Standing:
    changes = {name: value for reason in reasons for name, value in CHANGES[reason].items()}
    return msgspec.structs.replace(DUE, **changes, **more)


def test_a_pod_that_nothing_holds_up_is_synced() -> None:
    for phase in WorkType:
        assert next_step(standing(phase=phase)) == Dispatch()


@pytest.mark.parametrize("reason", WaitReason)
def test_each_reason_alone_holds_a_pod_up_and_has_words(reason: WaitReason) -> None:
    step = next_step(standing(reason))
    assert isinstance(step, Wait)
    assert (step.reason, bool(WORDS[reason])) == (reason, True)


def test_of_several_reasons_the_first_counts() -> None:
    order = list(CHANGES)
    for number, first in enumerate(order[:-3]):
        step = next_step(standing(*reversed(order[number:])))
        assert isinstance(step, Wait)
        assert step.reason is first


@pytest.mark.parametrize("reason", OF_STARTS)
@pytest.mark.parametrize("phase", [WorkType.TERMINATING, WorkType.TERMINATED])
def test_a_pod_that_goes_down_does_not_wait_for_what_a_start_needs(reason: WaitReason, phase: WorkType) -> None:
    assert next_step(standing(reason, phase=phase)) == Dispatch()


def test_times_are_told_where_a_time_ends_the_wait() -> None:
    assert next_step(standing(WaitReason.NEXT_SYNC, next_sync_at=9.0)) == Wait(WaitReason.NEXT_SYNC, 9.0)
    assert next_step(standing(WaitReason.FAULT, next_sync_at=9.0)) == Wait(WaitReason.FAULT, 9.0)
    assert next_step(standing(WaitReason.ISOLATION, next_sync_at=9.0)) == Wait(WaitReason.ISOLATION, 70.0)
    assert next_step(standing(WaitReason.WORKER, next_sync_at=9.0)) == Wait(WaitReason.WORKER)


@given(
    st.builds(
        Standing,
        phase=st.sampled_from(WorkType),
        idle=st.none() | st.sampled_from(IDLE),
        objects=st.none() | st.sampled_from(sorted(OF_OBJECTS)),
        isolated_until=st.none() | st.just(70.0),
        **{name: st.booleans() for name in Standing.__struct_fields__ if name.startswith(("is_", "has_", "lacks_"))},
        awaits_solo_sync=st.booleans(),
    )
)
def test_every_pod_has_a_next_step(pod: Standing) -> None:
    """A sync goes out just when no reason holds, and else the first that holds is told."""
    holding = [
        reason
        for reason, changes in CHANGES.items()
        if all(getattr(pod, name) == value for name, value in changes.items())
        and (pod.phase is WorkType.SYNC or reason not in OF_STARTS)
    ]
    step = next_step(pod)
    assert (None if isinstance(step, Dispatch) else step.reason) == next(iter(holding), None)


def test_a_step_is_shown_with_a_time_of_the_wall_clock() -> None:
    now = Instant(wall=1_700_000_000.0, mono=100.0)
    assert shown(Dispatch(), now).reason == ""
    assert shown(Wait(WaitReason.NEXT_SYNC, 160.0), now) == NextStep(
        reason="NextSync", message=WORDS[WaitReason.NEXT_SYNC], until="2023-11-14T22:14:20Z"
    )
    assert shown(Wait(WaitReason.PAUSED), now).until == ""


def test_what_is_told_of_is_only_what_is_due_and_not_done() -> None:
    assert set(WaitReason) - HELD_UP == {WaitReason.SYNC, WaitReason.FINISHED, WaitReason.NEXT_SYNC}
