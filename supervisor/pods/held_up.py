"""Pods for which something is due that is not done, and what is reported of that.

A wait that a sync, an observation or a start of a worker ends at once is no news: it is reported when it has lasted
from one tick of the sync loop to the next.
"""

from __future__ import annotations

import msgspec

from ipc.link.messages.wait_reasons import HELD_UP
from supervisor.pods.next_step import Dispatch, Wait
from supervisor.pods.record import PodRecord


class HeldUpPods:
    """Pods that wait, or of which a wait was reported that is over."""

    def __init__(self) -> None:
        self._noted: list[PodRecord] = []

    def note(self, state: PodRecord, step: Dispatch | Wait) -> None:
        """Note what has come of the pod's turn."""
        before, wait = state.parts.hold_up, step if isinstance(step, Wait) and step.reason in HELD_UP else None
        if wait is None and before.wait is None:
            return
        is_same = before.wait is not None and wait is not None and wait.reason is before.wait.reason
        if not before.is_noted:
            self._noted.append(state)
        state.parts.hold_up = msgspec.structs.replace(
            before, wait=wait, is_lasting=before.is_lasting and is_same, is_noted=True
        )

    def take_lasting(self) -> list[PodRecord]:
        """Pods of which something else is to be reported now."""
        noted, self._noted, changed = self._noted, [], []
        for state in noted:
            before = state.parts.hold_up
            reason = before.wait.reason.value if before.wait is not None else ""
            reported = reason if before.is_lasting or not reason else before.reported
            state.parts.hold_up = msgspec.structs.replace(
                before, reported=reported, is_lasting=bool(reason), is_noted=bool(reason)
            )
            if reason:
                self._noted.append(state)
            if reported != before.reported:
                changed.append(state)
        return changed
