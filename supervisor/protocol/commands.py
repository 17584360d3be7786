"""Commands down: all effects that the sync loop asks the master for. Without behaviour.

The answer of the loop to one event (`supervisor.protocol.events`) is a list of these, carried out in their order.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.log.entry import NOBODY, Subject
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.catalogue import ChildCommand
from supervisor.protocol.events import ShutdownCause
from supervisor.protocol.garbage_report import GarbageReport


class RestsOn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Versions of files below ``stateDir`` on which a message rests: what its child does is right only for an agent
    that remembers them. 0 where it does not rest on that file."""

    allocations: int = 0
    bindings: int = 0
    restarts: int = 0
    ends: int = 0


NOTHING: Final = RestsOn()


class Send(msgspec.Struct, frozen=True):
    """A message for the child in that slot."""

    slot: int
    message: ChildCommand
    rests_on: RestsOn = NOTHING
    """Versions that are on disk before it goes."""


class PodsStopped(msgspec.Struct, frozen=True):
    """All pods are gone from the runtime: the answer to `StopPods`."""


class GarbageCollected(msgspec.Struct, frozen=True):
    """The answer to the `GarbageRequest` of that ticket."""

    ticket: int
    report: GarbageReport


class FreezeAnswered(msgspec.Struct, frozen=True):
    """The answer to the `FreezeRequest` of that ticket: done, or a refusal."""

    ticket: int
    code: int = 200
    reason: str = ""
    message: str = ""


class DeathExplained(msgspec.Struct, frozen=True):
    """The death that this answers is a pod's doing, and the pod is isolated: the worker is not to blame."""

    slot: int


class WorkersWanted(msgspec.Struct, frozen=True):
    """Number of pod workers from now on; those beyond have to give their pods away first."""

    count: int
    quarantine: bool = False
    """And one more, for pods that kill theirs."""


class SlotVacated(msgspec.Struct, frozen=True):
    """A slot that is not wanted any more and whose last pod has moved: its worker is to end."""

    slot: int


class UpdateRefused(msgspec.Struct, frozen=True):
    """The manifest of a running pod asks for what cannot be: this is what the pod stays."""

    pod: Pod


class ShutdownChanged(msgspec.Struct, frozen=True):
    """How far the node is with going down."""

    cause: ShutdownCause | None = None
    """None: it does not, or no longer."""
    started_at: float = 0.0
    """Wall time, in seconds, of the newest one."""
    ended_at: float = 0.0
    """Likewise, of its last pod's end; 0.0 before."""
    drained: bool = False
    """Somebody wants it drained, also when the host goes down besides."""


class Log(msgspec.Struct, frozen=True):
    """One line for the agent's log."""

    level: str
    text: str
    subject: Subject = NOBODY
    duration_s: float | None = None
    slot: int | None = None
    """Duration and slot as of `ipc.host.log.entry.Entry`."""


LoopCommand = (
    Send
    | PodsStopped
    | GarbageCollected
    | FreezeAnswered
    | DeathExplained
    | WorkersWanted
    | SlotVacated
    | UpdateRefused
    | ShutdownChanged
    | Log
)
