"""One life of the agent on a node of a cluster: the real source ``api`` and merge before the sync loop, the real
checkpoint, and the node worker, which speaks to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.v1.config_objects import ConfigMap
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.probe_results import ProbeResults
from ipc.link.eventloop.batch import LONGEST_S
from ipc.link.messages.api_server import AgentChanged
from ipc.link.messages.base import Ready
from ipc.link.messages.cluster import (
    NodeStated,
    ObjectStated,
    ObjectWithdrawn,
    PodsListed,
    PodsTaken,
    PodStated,
    PodValuesStated,
    PodWithdrawn,
    ReferencesRead,
)
from ipc.link.messages.node_worker import Relisted
from ipc.link.messages.pod_worker import SyncPod
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.commands import Send
from supervisor.protocol.events import StatusesDue
from supervisor.protocol.manifests import FILE_SOURCE, ManifestPod, SourceSnapshot
from supervisor.protocol.source_updates import ObjectUpdate, PodOperation, PodUpdate, Update
from supervisor.sources import checkpoint
from supervisor.sources.api_source import ApiSource
from supervisor.sources.objects.merge import PodConfig
from tests.sim.agent import Agent
from tests.sim.children import Child
from tests.sim.cluster.rules import ServerRules
from tests.sim.cluster.values import PodValues
from tests.sim.disk import NO_FILES, Files
from tests.sim.given import Given
from tests.sim.loop import NOBODY

SAVED_S: Final = 0.5
"""Longest time from a merge to its checkpoint."""


class NodeAgent(Agent):
    """An agent whose pods all pass the real merge."""

    def __init__(
        self,
        given: Given,
        rules: ServerRules,
        values: PodValues,
        saved: Path,
        probe_results: Mapping[str, ProbeResults] | None = None,
        files: Files = NO_FILES,
    ) -> None:
        """``saved``: the checkpoint's file."""
        super().__init__(given, {}, probe_results, files)
        self.link = ApiSource()
        self.config = PodConfig((FILE_SOURCE, API_SOURCE))
        self._rules = rules
        self._values = values
        self._saved = saved
        self._following: asyncio.Task[None] | None = None

    def start(self) -> None:
        super().start()
        for update in self.config.restore(checkpoint.load(self._saved) or ()):
            self._take_update(update)
        self.board.record_host_ips(("10.0.0.1",))
        self._following = asyncio.get_running_loop().create_task(self._follow(), context=NOBODY.copy())

    def die(self, why: str) -> None:
        super().die(why)
        if self._following is not None:
            self._following.cancel()

    # --- what is wanted ---

    def state(self, desired: Mapping[str, Pod]) -> None:
        """The manifests were read."""
        pods = tuple(ManifestPod(pod=pod, file=f"{uid}.yaml") for uid, pod in desired.items())
        self._merge(SourceSnapshot(source=FILE_SOURCE, pods=pods, objects=(), complete=True))

    async def _follow(self) -> None:
        """The set of the cluster, as `SourceManager` follows it."""
        while True:
            snapshot = await self.link.changed()
            self._merge(snapshot)
            if self.link.take_listed():
                self._feed(StatusesDue())
                self._post(Send(NODE_SLOT, PodsTaken()))

    def _merge(self, snapshot: SourceSnapshot) -> None:
        for update in self.config.merge(snapshot, self._given.clock.now()):
            self._take_update(update)
        self._later(SAVED_S, self._save)
        if self.config.all_ready() and not self.sources_ready:
            self._sources_read()
            self._report_agent()

    def _save(self) -> None:
        desired = (
            msgspec.structs.replace(item, pod=self.refused.get(item.pod.metadata.uid, item.pod))
            for item in self.config.desired()
        )
        checkpoint.save(self._saved, desired)

    def _take_update(self, update: Update) -> None:
        match update:
            case PodUpdate(op=op, source=source, pods=pods):
                for pod in pods:
                    self._note_pod(op, pod)
                self._given.trace.note(f"{source}: {op.value} {' '.join(pod.metadata.uid[:8] for pod in pods)}")
            case ObjectUpdate(stated=stated, gone=gone):
                objects = (item.object for item in stated)
                self.objects |= {each.metadata.name: each for each in objects if isinstance(each, ConfigMap)}
                for key in gone:
                    self.objects.pop(key.name, None)
        if isinstance(update, PodUpdate) and update.source == API_SOURCE and self.sources_ready:
            update = msgspec.structs.replace(update, is_batched=True)
            self._later(LONGEST_S, self._end_burst)
        self._feed(update)

    def _end_burst(self) -> None:
        self._feed(StatusesDue())

    def _note_pod(self, op: PodOperation, pod: Pod) -> None:
        uid = pod.metadata.uid
        old = self.stated.get(uid)
        if op is PodOperation.REMOVE:
            self._given.marks.gone(uid)
            self.stated.pop(uid, None)
            return
        if op is not PodOperation.RECONCILE:
            self.refused.pop(uid, None)
            if old is not None:
                self._given.watch.is_edited(old)
            if self._loop.state(uid) is None:
                self.pressure.comes(pod)
        self.stated[uid] = pod

    # --- children ---

    def _hear(self, child: Child, message: Any) -> None:
        if not self.alive or self.children[child.slot] is not child:
            super()._hear(child, message)
            return
        match message:
            case PodStated() | ReferencesRead() | PodWithdrawn() | PodsListed() | ObjectStated() | ObjectWithdrawn():
                self.link.take(message)
            case PodValuesStated() | NodeStated():
                self._feed(message)
            case Ready() if child.slot == NODE_SLOT:
                self.link.begin()
                super()._hear(child, message)
                self._report_agent()
            case Relisted(started_at=started_at):
                self.board.record_relist(started_at)
                super()._hear(child, message)
            case _:
                super()._hear(child, message)

    def _check(self, child: Child | None, sync: SyncPod) -> None:
        super()._check(child, sync)
        self._rules.sync(sync)
        self._values.sync(sync)

    def _may_remove(self, uid: str) -> bool:
        """A deletion that the server has stated is no conclusion."""
        return super()._may_remove(uid) or uid in self._rules.unwanted

    def _report_agent(self) -> None:
        """See `Master._report_agent`."""
        self._post(
            Send(
                NODE_SLOT,
                AgentChanged(
                    version="0.1.0",
                    instance="sim",
                    node_name="sim",
                    pid=1,
                    started_at=self._given.clock.now().wall,
                    runtime_version="5.0.0",
                    runtime_healthy=True,
                    runtime_message="",
                    sources_ready=self.sources_ready,
                    workers=(),
                ),
            )
        )
