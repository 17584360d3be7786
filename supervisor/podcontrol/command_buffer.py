"""Commands that one event causes in the sync loop, and the children that are up and can get messages."""

from __future__ import annotations

from collections.abc import Iterable

from ipc.link.messages.api_server import FeedMessage, FeedReplay
from ipc.link.messages.catalogue import ChildCommand
from ipc.link.messages.node_worker import (
    CollectImages,
    CollectLogs,
    DeleteVolume,
    Observe,
    ObserveNode,
    Relist,
    Track,
    Untrack,
    UpdatePodCgroups,
)
from ipc.link.messages.pod_worker import CancelSync
from supervisor.pods.board_rows import NO_ROW
from supervisor.pods.record import PodRecord
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.commands import NOTHING, LoopCommand, RestsOn, Send


class CommandBuffer:
    """Commands in their order. It keeps none for a child that is down: a new child gets what it needs when it comes
    up."""

    def __init__(self, fed: tuple[int, ...]) -> None:
        """``fed``: slots of those who tell others of pods."""
        self.fed = fed
        self._up: dict[int, int] = {}
        self._commands: list[LoopCommand] = []

    # --- children that are up ---

    def up(self, slot: int, incarnation: int) -> None:
        """The child in that slot is ready for work."""
        self._up[slot] = incarnation

    def down(self, slot: int) -> None:
        self._up.pop(slot, None)

    def is_up(self, slot: int) -> bool:
        return slot in self._up

    def incarnation(self, slot: int) -> int | None:
        """Incarnation of the child in that slot; None while none is up."""
        return self._up.get(slot)

    # --- commands ---

    def add(self, command: LoopCommand) -> None:
        self._commands.append(command)

    def send(self, slot: int, message: ChildCommand, rests_on: RestsOn = NOTHING) -> None:
        if slot in self._up:
            self._commands.append(Send(slot, message, rests_on))

    def send_all(self, commands: Iterable[Send]) -> None:
        for command in commands:
            self.send(command.slot, command.message, command.rests_on)

    def cancel_sync(self, state: PodRecord) -> None:
        """Have the sync in flight, if there is one, end at its next step."""
        if flight := state.lifecycle.in_flight:
            self.send(flight.slot, CancelSync(uid=state.uid, generation=flight.generation))

    def track(self, state: PodRecord) -> None:
        """Have the pod's observations written to its row of the board, if it has one."""
        if state.row != NO_ROW:
            self.to_node(Track(uid=state.uid, row=state.row))

    def to_node(
        self,
        message: (
            Track
            | Untrack
            | Observe
            | Relist
            | CollectLogs
            | DeleteVolume
            | CollectImages
            | ObserveNode
            | UpdatePodCgroups
        ),
        rests_on: RestsOn = NOTHING,
    ) -> None:
        self.send(NODE_SLOT, message, rests_on)

    def to_api(self, messages: Iterable[FeedMessage]) -> None:
        """Send messages to every process that tells others of pods."""
        for message in messages:
            for slot in self.fed:
                self.send(slot, message)

    def feed(self, slot: int, messages: Iterable[FeedReplay]) -> None:
        """Send messages to one of these processes, which has just come up."""
        for message in messages:
            self.send(slot, message)

    def take(self) -> list[LoopCommand]:
        """Commands since the last `take`: those of one event."""
        commands, self._commands = self._commands, []
        return commands
