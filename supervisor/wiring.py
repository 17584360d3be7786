"""Wiring of the sync loop: a message of a child becomes an event, a command becomes an effect.

The master and the simulation connect the loop by the same two functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.api_server import AdminRequest
from ipc.link.messages.base import EventReport, ProfileTaken, PullEnded, PullProgress
from ipc.link.messages.cluster import (
    NodeStated,
    ObjectStated,
    ObjectWithdrawn,
    PodsListed,
    PodStated,
    PodValuesStated,
    PodWithdrawn,
    ReferencesRead,
)
from ipc.link.messages.node_worker import (
    ImagesCollected,
    LogsCollected,
    NodeObserved,
    ObservationFailed,
    Observed,
    Relisted,
    RuntimeHealth,
    ServiceSilent,
    VolumeDeleted,
)
from ipc.link.messages.pod_worker import (
    AbandonPull,
    ContainerBegins,
    ProbeResultChanged,
    ProbingStopped,
    PullImage,
    SyncDone,
)
from ipc.link.shm.board import Board
from supervisor.pods import board_views
from supervisor.protocol.commands import (
    DeathExplained,
    FreezeAnswered,
    GarbageCollected,
    Log,
    LoopCommand,
    PodsStopped,
    Send,
    ShutdownChanged,
    SlotVacated,
    UpdateRefused,
    WorkersWanted,
)
from supervisor.protocol.events import BeginningRequest, LoopEvent, Observations, PullRequest

ClusterReport = PodStated | ReferencesRead | PodWithdrawn | PodsListed | ObjectStated | ObjectWithdrawn
"""Messages for the source of a cluster's pods."""
MasterReport = ServiceSilent | AdminRequest | ProfileTaken | ClusterReport
"""Messages that the master answers without the sync loop."""
LoopReport = (
    SyncDone
    | EventReport
    | ObservationFailed
    | PullProgress
    | PullEnded
    | NodeObserved
    | ProbeResultChanged
    | ProbingStopped
    | ImagesCollected
    | LogsCollected
    | VolumeDeleted
    | RuntimeHealth
    | PodValuesStated
    | NodeStated
    | PullImage
    | AbandonPull
    | ContainerBegins
    | Observed
    | Relisted
)
"""Messages that are events of the sync loop."""


def loop_event(slot: int, message: LoopReport, board: Board) -> LoopEvent:
    """The event that a message of the child in that slot is. Observations get their content from the board."""
    match message:
        case SyncDone() | EventReport() | ObservationFailed() | PullProgress() | PullEnded() | NodeObserved():
            return message
        case ProbeResultChanged() | ProbingStopped() | ImagesCollected() | LogsCollected() | VolumeDeleted():
            return message
        case RuntimeHealth() | PodValuesStated() | NodeStated():
            return message
        case PullImage() | AbandonPull():
            return PullRequest(slot, message)
        case ContainerBegins():
            return BeginningRequest(slot, message)
        case Observed(observations=observations):
            return Observations(board_views.resolve(board, observations))
        case Relisted(started_at=started_at, changed=changed, unseen=unseen):
            return Observations(board_views.resolve(board, changed), started_at, unseen)
        case _:
            assert_never(message)


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    """Functions that carry out the sync loop's commands, one for each kind of command."""

    send: Callable[[Send], None]
    update_refused: Callable[[Pod], None]
    log: Callable[[Log], None]
    death_explained: Callable[[int], None]
    """Takes a slot."""
    workers_wanted: Callable[[WorkersWanted], None]
    slot_vacated: Callable[[int], None]
    garbage_collected: Callable[[GarbageCollected], None]
    freeze_answered: Callable[[FreezeAnswered], None]
    pods_stopped: Callable[[], None]
    shutdown_changed: Callable[[ShutdownChanged], None]


def carry_out(commands: Iterable[LoopCommand], effects: Effects) -> None:
    """Carry out commands of the sync loop, in their order."""
    for command in commands:
        match command:
            case Send():
                effects.send(command)
            case UpdateRefused(pod):
                effects.update_refused(pod)
            case Log():
                effects.log(command)
            case DeathExplained(slot):
                effects.death_explained(slot)
            case WorkersWanted():
                effects.workers_wanted(command)
            case SlotVacated(slot):
                effects.slot_vacated(slot)
            case GarbageCollected():
                effects.garbage_collected(command)
            case FreezeAnswered():
                effects.freeze_answered(command)
            case PodsStopped():
                effects.pods_stopped()
            case ShutdownChanged():
                effects.shutdown_changed(command)
            case _:
                assert_never(command)
