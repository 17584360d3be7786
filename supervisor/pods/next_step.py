"""Next step of one pod: its worker gets a sync now, or the pod waits for something that has a name and an end. Pure.

The kubelet decides the same in several places (pkg/kubelet/pod_workers.go, podWorkerLoop and startPodSync;
pkg/kubelet/util/queue/work_queue.go), and says nowhere which of them holds a pod up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant, rfc3339
from ipc.link.messages.pod_worker import WorkType
from ipc.link.messages.wait_reasons import WORDS, NextStep, WaitReason

OF_OBJECTS: Final = frozenset({WaitReason.ROOM, WaitReason.SOURCES, WaitReason.FAULT})
"""Reasons that are known once a sync is put together."""


class Wait(msgspec.Struct, frozen=True):
    """Nothing is sent to the pod's worker now."""

    reason: WaitReason
    until: float | None = None
    """Monotonic seconds; None where an event ends it."""


class Dispatch(msgspec.Struct, frozen=True):
    """A sync goes to the pod's worker."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """All of a pod that decides on its next step."""

    phase: WorkType
    idle: WaitReason | None
    """One of `IDLE`, where no sync is due."""
    has_fresh_view: bool
    """Observed since its last act."""
    lacks_admission: bool = False
    lacks_devices: bool = False
    is_paused: bool = False
    has_worker: bool = True
    isolated_until: float | None = None
    """Monotonic seconds; None where nothing isolates it."""
    awaits_solo_sync: bool = False
    objects: WaitReason | None = None
    """One of `OF_OBJECTS`, where what it refers to cannot go along with a sync."""
    next_sync_at: float | None = None
    """Monotonic seconds; None where only an event brings one."""


def next_step(pod: Standing) -> Dispatch | Wait:
    """The first reason that holds, else a sync. A pod that goes down waits for nothing that a start would need."""
    held_up = pod.idle or next((reason for reason, holds in _REASONS if holds(pod)), None)
    if held_up is None:
        return Dispatch()
    return Wait(held_up, _UNTIL.get(held_up, _by_event)(pod))


def shown(step: Dispatch | Wait, now: Instant) -> NextStep:
    """The step for people, who have a wall clock."""
    if isinstance(step, Dispatch):
        return NextStep(reason="", message="nothing: a sync goes to its worker now")
    until = rfc3339(now.wall + step.until - now.mono) if step.until is not None else ""
    return NextStep(reason=step.reason, message=WORDS[step.reason], until=until)


def _starts(pod: Standing) -> bool:
    return pod.phase is WorkType.SYNC


_REASONS: Final[tuple[tuple[WaitReason, Callable[[Standing], bool]], ...]] = (
    (WaitReason.OBSERVATION, lambda pod: not pod.has_fresh_view),
    (WaitReason.ADMISSION, lambda pod: _starts(pod) and pod.lacks_admission),
    (WaitReason.DEVICES, lambda pod: _starts(pod) and pod.lacks_devices),
    (WaitReason.PAUSED, lambda pod: _starts(pod) and pod.is_paused),
    (WaitReason.WORKER, lambda pod: not pod.has_worker),
    (WaitReason.ISOLATION, lambda pod: pod.isolated_until is not None),
    (WaitReason.SOLO_SYNC, lambda pod: pod.awaits_solo_sync),
    *((reason, lambda pod, reason=reason: pod.objects is reason) for reason in sorted(OF_OBJECTS)),
)
"""Reasons for which something that is due is not done, in the order in which they are looked at."""


def _by_event(_: Standing) -> float | None:
    return None


_UNTIL: Final[Mapping[WaitReason, Callable[[Standing], float | None]]] = {
    WaitReason.NEXT_SYNC: lambda pod: pod.next_sync_at,
    WaitReason.FAULT: lambda pod: pod.next_sync_at,
    WaitReason.ISOLATION: lambda pod: pod.isolated_until,
}
