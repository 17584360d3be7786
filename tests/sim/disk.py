"""The files of the sync loop's state, whose writes take time: an agent that is killed leaves what they had before."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ipc.k8s.kubecontainer.remembered_ends import RememberedPod
from supervisor.loop.loop import SyncLoop
from supervisor.protocol.commands import RestsOn
from supervisor.state.resources_checkpoint import PodResources
from supervisor.state.volume_bindings import Binding
from tests.sim.loop import NOBODY

LONGEST_WRITE_S: Final = 0.3


class Files(msgspec.Struct, frozen=True, kw_only=True):
    """Content of the files that are written as soon as anything in them has changed."""

    resources: Mapping[str, PodResources] = {}
    bindings: tuple[Binding, ...] = ()
    restarts: dict[str, dict[str, int | None]] = {}
    ends: dict[str, RememberedPod] = {}


NO_FILES: Final = Files()


class SimDisk:
    """The disk of one agent."""

    def __init__(self, rng: random.Random, loop: SyncLoop, files: Files, written: Callable[[], None]) -> None:
        """``written`` is called after every write."""
        self.files = files
        self._rng = rng
        self._loop = loop
        self._written = written
        self._kept = RestsOn()
        self._is_writing = False

    def keep(self) -> None:
        """Begin to write what is new, if nothing is being written. To be called after every event."""
        loop = self._loop
        newest = RestsOn(
            allocations=loop.durable.allocations.version,
            bindings=loop.durable.volumes.version,
            restarts=loop.durable.requested_restarts.version,
            ends=loop.durable.ended_containers.version,
        )
        if self._is_writing or newest == self._kept:
            return
        self._is_writing = True
        files = Files(
            resources=dict(loop.durable.allocations.all_resources()),
            bindings=loop.durable.volumes.bindings,
            restarts=loop.durable.requested_restarts.everything(),
            ends=loop.durable.ended_containers.everything(),
        )
        delay_s = self._rng.uniform(0.001, LONGEST_WRITE_S)
        asyncio.get_running_loop().call_later(delay_s, self._end, files, newest, context=NOBODY)

    def is_kept(self, rests_on: RestsOn) -> bool:
        """Whether all of that is written."""
        kept = self._kept
        return (
            rests_on.allocations <= kept.allocations
            and rests_on.bindings <= kept.bindings
            and rests_on.restarts <= kept.restarts
            and rests_on.ends <= kept.ends
        )

    def _end(self, files: Files, versions: RestsOn) -> None:
        self._is_writing = False
        self.files, self._kept = files, versions
        self._written()
