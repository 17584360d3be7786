"""Knowledge of the sync loop that outlives the agent: read from its files at the start, written as it changes, and a
last time at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ipc.host.clock import Clock
from ipc.host.eviction_marks import evicted
from ipc.k8s.kubecontainer.pod_failure import decode_failure
from supervisor.config.settings import PODS_DIR, Settings
from supervisor.loop.loop import DurableState
from supervisor.protocol.commands import RestsOn
from supervisor.protocol.events import (
    BindingsRestored,
    ContainerRestartsRestored,
    EndsRestored,
    EventsRestored,
    EvictionsRestored,
    LoopEvent,
    ProbeResultsRestored,
    ResourcesRestored,
)
from supervisor.record.event_log import EventLog
from supervisor.record.event_writer import EventWriter
from supervisor.state.container_restarts_checkpoint import FILE as RESTARTS_FILE
from supervisor.state.container_restarts_checkpoint import ContainerRestartsCheckpoint
from supervisor.state.ended_containers_file import FILE as ENDS_FILE
from supervisor.state.ended_containers_file import EndedContainersCheckpoint
from supervisor.state.probe_checkpoint import ProbeCheckpoint
from supervisor.state.resources_checkpoint import ACTUATED_FILE, ALLOCATED_FILE, ResourcesCheckpoint
from supervisor.state.volume_bindings import FILE as BINDINGS_FILE
from supervisor.state.volume_bindings import VolumeBindingsCheckpoint

EVENTS_FILE = "events.jsonl"
"""Below ``stateDir``."""
PROBES_FILE = "probes.json"
"""Likewise."""
FILES: Final = (EVENTS_FILE, PROBES_FILE, ALLOCATED_FILE, ACTUATED_FILE, RESTARTS_FILE, ENDS_FILE, BINDINGS_FILE)
"""All of them."""


class LoopCheckpoints:
    """All files of the sync loop, below ``stateDir``. Evictions are read only: a pod's worker writes them."""

    def __init__(
        self, settings: Settings, state: DurableState, clock: Clock, *, written: Callable[[], None] = lambda: None
    ) -> None:
        """``written`` is called when a write of what a worker acts on has ended."""
        directory = settings.state_dir
        self._state = state
        self._pods_dir = directory / PODS_DIR
        self._events = EventWriter(EventLog(directory / EVENTS_FILE), clock)
        self._probes = ProbeCheckpoint(directory / PROBES_FILE, clock)
        self._resources = ResourcesCheckpoint(directory, clock, written)
        self._restarts = ContainerRestartsCheckpoint(directory, clock, written)
        self._ends = EndedContainersCheckpoint(directory, clock, written)
        self._bindings = VolumeBindingsCheckpoint(directory, clock, written)

    def restore(self) -> Iterator[LoopEvent]:
        """Events for the loop, as an earlier run of the agent has left its files; the history comes first. A file that
        cannot be used is logged, and costs what is in it."""
        ends = self._ends.restore()  # before the first event is handled: then this agent gives signs of life
        yield EventsRestored(self._events.restore())
        yield EvictionsRestored({uid: decode_failure(text) for uid, text in evicted(self._pods_dir).items()})
        yield ProbeResultsRestored(self._probes.restore())
        yield ResourcesRestored(self._resources.restore())
        yield ContainerRestartsRestored(self._restarts.restore())
        yield EndsRestored(ends.pods, ends.alive_at)
        yield BindingsRestored(self._bindings.restore())

    def is_kept(self, rests_on: RestsOn) -> bool:
        """Whether all of that is on disk, or cannot be written."""
        return (
            self._resources.is_kept(rests_on.allocations)
            and self._bindings.is_kept(rests_on.bindings)
            and self._restarts.is_kept(rests_on.restarts)
            and self._ends.is_kept(rests_on.ends)
        )

    def keep_at_once(self, *, is_urgent: bool = False) -> None:
        """Write what a worker acts on at this moment: resources that pods were allocated, volumes that claims have,
        containers that are to begin anew, and those that never do. To be called after every event; ``is_urgent``:
        a worker waits for it."""
        volumes = self._state.volumes
        restarts = self._state.requested_restarts
        self._restarts.keep(restarts.version, restarts.everything)
        self._ends.keep(self._state.ended_containers, is_urgent=is_urgent)
        self._resources.keep(self._state.allocations, is_urgent=is_urgent)
        self._bindings.keep(volumes.version, lambda: volumes.bindings)

    def keep(self) -> None:
        """Write everything that is new. To be called every second."""
        self._events.keep(self._state.events)
        self._probes.keep(self._state.probes.all_results)
        self.keep_at_once()

    def write_again(self) -> None:
        """The files have gone away: write them all by the next `keep`."""
        for each in (self._events, self._probes, self._resources, self._restarts, self._ends, self._bindings):
            each.write_again()

    async def close(self) -> None:
        """Write the last of everything, as far as the disk takes it in time."""
        await self._events.close(self._state.events)
        await self._probes.close(self._state.probes.all_results())
        await self._resources.close(self._state.allocations)
        volumes, restarts = self._state.volumes, self._state.requested_restarts
        await self._restarts.close(restarts.version, restarts.everything)
        await self._ends.close(self._state.ended_containers)
        await self._bindings.close(volumes.version, lambda: volumes.bindings)
