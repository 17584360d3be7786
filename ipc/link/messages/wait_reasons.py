"""Reasons for which nothing is done for a pod now: the sync loop finds them, `describe pod` and metrics show them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import msgspec


class WaitReason(enum.StrEnum):
    """Reason of a wait. Each ends by the event, or at the time, of which `WORDS` speaks."""

    SYNC = "Sync"
    FINISHED = "Nothing"
    NEXT_SYNC = "NextSync"
    OBSERVATION = "Observation"
    ADMISSION = "Admission"
    DEVICES = "Devices"
    PAUSED = "Paused"
    WORKER = "Worker"
    ISOLATION = "Isolation"
    SOLO_SYNC = "SoloSync"
    ROOM = "Room"
    SOURCES = "Sources"
    FAULT = "Fault"


WORDS: Final[Mapping[WaitReason, str]] = {
    WaitReason.SYNC: "its worker carries out a sync",
    WaitReason.FINISHED: "nothing of it runs, and nothing is left to do",
    WaitReason.NEXT_SYNC: "nothing has to be done before its next sync",
    WaitReason.OBSERVATION: "Podman has not shown it since its last sync",
    WaitReason.ADMISSION: "pods that give way to it have not ended, or the node goes down",
    WaitReason.DEVICES: "its devices still belong to pods that have not ended",
    WaitReason.PAUSED: "it is paused: rootlet resume pod",
    WaitReason.WORKER: "its worker is being started",
    WaitReason.ISOLATION: "it has ended its worker several times",
    WaitReason.SOLO_SYNC: "another pod, which may have ended their worker, is synced first",
    WaitReason.ROOM: "ConfigMaps and Secrets of other pods are on their way to its worker",
    WaitReason.SOURCES: "a source of ConfigMaps and Secrets has not been read yet",
    WaitReason.FAULT: "an error in the agent, which its log has",
}
"""Words that name the end of each: an answer of its worker, an observation, an end of another pod, a resume, a worker
that is up, a source that was read. Some end at a time (`supervisor.pods.next_step.Wait.until`)."""
IDLE: Final = (WaitReason.SYNC, WaitReason.FINISHED, WaitReason.NEXT_SYNC)
"""Reasons for which nothing is due, in the order in which they count."""
HELD_UP: Final = frozenset(WaitReason).difference(IDLE)
"""Reasons for which something that is due is not done."""
HELD_UP_CONDITION: Final = "rootlet.dev/HeldUp"
"""Type of the condition with which the pod's own server tells such a reason."""


class NextStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Next step of a pod, as it is shown."""

    reason: str
    """A `WaitReason`; empty when a sync goes to its worker now."""
    message: str
    until: str = ""
    """RFC 3339; empty where an event ends the wait."""
