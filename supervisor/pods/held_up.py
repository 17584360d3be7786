"""Pods for which something is due that is not done, and what is told of that.

A wait that a sync, an observation or a start of a worker ends at once is nobody's news: it is told when it has lasted
from one tick of the sync loop to the next.
"""

from __future__ import annotations

from ipc.messages.wait_reasons import HELD_UP
from supervisor.pods.next_step import Dispatch, Wait
from supervisor.pods.record import PodRecord


class HeldUpPods:
    """States of the pods that wait, or of which a wait was told that is over."""

    def __init__(self) -> None:
        self._states: dict[str, PodRecord] = {}

    def note(self, state: PodRecord, step: Dispatch | Wait) -> None:
        """Note what has come of the pod's turn."""
        wait = step if isinstance(step, Wait) and step.reason in HELD_UP else None
        if wait is not None or state.wait is not None:
            state.hold_up(wait)
            self._states[state.uid] = state

    def tick(self) -> list[PodRecord]:
        """States of the pods of which something else is to be told now."""
        changed = [state for state in self._states.values() if state.wait_lasts()]
        for uid in [uid for uid, state in self._states.items() if state.wait is None]:
            del self._states[uid]
        return changed

    def forget(self, uid: str) -> None:
        """Nothing is left of the pod."""
        self._states.pop(uid, None)
