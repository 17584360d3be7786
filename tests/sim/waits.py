"""No pod waits without a reason that ends: at every tick, each one has a next step, and that is no forgotten sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.link.messages.wait_reasons import WaitReason
from supervisor.loop.loop import SyncLoop
from supervisor.pods.next_step import Dispatch, next_step
from supervisor.pods.record import PodRecord

TICK_S: Final = 1.0
"""Between two ticks of the sync loop."""


def endless(loop: SyncLoop, now: Instant) -> Iterator[str]:
    """Promises that the loop breaks right after a tick, for people."""
    for state in loop.pod_table:
        uid, step = state.uid[:8], loop._steps.next_step(state, now)
        if isinstance(step, Dispatch):
            yield f"{uid}: its sync ({state.lifecycle.phase}) could go out, and nobody sends it"
        elif step.until is not None and step.until < now.mono - TICK_S:
            yield f"{uid}: it waits for {step.reason}, which ended {now.mono - step.until:.1f} s ago"
        elif step.reason is WaitReason.NEXT_SYNC and step.until is None and state.pod is not None:
            yield f"{uid}: nothing brings its next sync"
        elif step.reason is WaitReason.OBSERVATION and _is_all(loop, state, now) and not _comes(loop, state):
            yield f"{uid}: it waits for an observation that nobody is asked for"


def _is_all(loop: SyncLoop, state: PodRecord, now: Instant) -> bool:
    """Whether it waits for nothing but an observation. The end of any other wait asks for one."""
    standing = loop._steps.standing(state, None, now)
    return isinstance(next_step(msgspec.structs.replace(standing, has_fresh_view=True)), Dispatch)


def _comes(loop: SyncLoop, state: PodRecord) -> bool:
    """Whether an observation is under way, or the pod's next turn asks for one. A pod whose inspection failed in a
    relist is inspected again by the node worker, unasked."""
    requests = loop._steps._observation_requests
    is_coming = requests.is_under_way(state.uid) or state.uid in requests.cache.unseen
    return is_coming or state.parts.next_sync_at is not None
