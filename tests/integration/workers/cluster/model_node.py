"""A node of which client, reflector, source, merge and statuses are the real ones, and the master is a model."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ipc.host.clock import SystemClock
from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.v1.pod import Pod
from ipc.link.eventloop.batch import BatchGate
from ipc.link.messages.base import EventReport
from ipc.link.messages.cluster import PodsListed
from supervisor.protocol.source_updates import PodOperation, PodUpdate
from supervisor.sources.api_source import ApiSource
from supervisor.sources.objects.merge import PodConfig
from workers.cluster.pods.known_pod import KnownPod, decode_known_pod
from workers.cluster.pods.pod_source import PodSource, Statement
from workers.cluster.pods.status_manager import StatusManager
from workers.cluster.pods.status_writer import StatusWriter
from workers.kubeclient.client import ApiClient
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import PODS

STARTED: Final = "2026-01-01T00:00:00Z"


class Mirrors:
    def known(self, uid: str, pod: KnownPod | None) -> None:
        raise AssertionError("there is no static pod")

    def listed(self) -> None:
        """There is none."""


class Needs:
    """Something is to be read of every second pod."""

    def fits(self, _: Pod) -> bool:
        return True

    async def see_node(self) -> None:
        raise AssertionError("every pod fits")

    def follow(self, pod: Pod, *, is_new: bool) -> bool:
        return int(pod.metadata.resource_version) % 2 == 0

    async def need(self, _: Pod) -> None:
        await asyncio.sleep(0)

    def forget(self, uid: str) -> None:
        """Nothing is remembered."""


class Node:
    """The master as a model: what is stated runs, what is deleted ends, at once."""

    def __init__(self, client: ApiClient, **status: Any) -> None:
        """``status``: what it says of a pod that runs, beside that."""
        self.clock = SystemClock()
        self.statuses = StatusManager()
        self.writer = StatusWriter(client, self.statuses, self.clock, BatchGate())
        self.pods = PodSource(self.statuses, Mirrors(), Needs(), self.clock, self.tell, self.writer.wake)
        self.reflector: Reflector[KnownPod] = Reflector(
            client, PODS, field_selector="spec.nodeName=n1", decode=decode_known_pod, sink=self.pods
        )
        self.source, self.config = ApiSource(), PodConfig((API_SOURCE,))
        self.status = {"phase": "Running", "startTime": STARTED, "conditions": []} | status
        self.running: dict[str, str] = {}
        """UID to name."""
        self.removed: set[str] = set()
        """UIDs of pods that ended without a deletion."""

    def tell(self, statement: Statement) -> None:
        assert not isinstance(statement, EventReport), "no pod is refused"
        self.source.take(statement)
        if self.config.all_ready() or isinstance(statement, PodsListed):
            for update in self.config.merge(self.source.snapshot(), self.clock.now()):
                if isinstance(update, PodUpdate):
                    for pod in update.pods:
                        self.act(update.op, pod)
        self.writer.wake()

    def act(self, op: PodOperation, pod: Pod) -> None:
        uid, now = pod.metadata.uid, self.clock.now().mono
        if op is PodOperation.ADD and pod.metadata.deletion_timestamp is None:
            self.running[uid] = pod.metadata.name
            self.statuses.report_plain(uid, self.status, now)
        elif op in (PodOperation.DELETE, PodOperation.ADD):
            self.running.pop(uid, None)
            self.statuses.report_plain(uid, {"phase": "Succeeded", "startTime": STARTED, "conditions": []}, now)
            self.statuses.released(uid)
        elif op is PodOperation.REMOVE and uid in self.running:
            del self.running[uid]
            self.removed.add(uid)
            self.statuses.released(uid)
