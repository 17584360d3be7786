"""The cluster's part of the node worker, put together, and the master's messages handed to its rooms."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn, assert_never

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.api.annotations import API_SOURCE
from ipc.k8s.api.v1.event import Event
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.link.eventloop.batch import BatchGate
from ipc.link.eventloop.tasks import restarted
from ipc.link.messages.api_server import (
    AgentChanged,
    EventChanged,
    EventGone,
    FeedSynced,
    ObjectChanged,
    ObjectGone,
    PodChanged,
    PodGone,
)
from ipc.link.messages.cluster import ClusterCommand, ClusterReport, NodeStated, PodsTaken, RatesChanged
from ipc.link.wire.boot import ChildContext
from ipc.link.wire.cluster_settings import ClusterSettings
from workers.cluster.clients import NodeClients
from workers.cluster.events.sender import EventSender
from workers.cluster.node.node_sync import NodeSync
from workers.cluster.node.observer import NodeObserver
from workers.cluster.node.types import ClusterNode
from workers.cluster.objects.objects import Objects
from workers.cluster.objects.service_variables import master_service
from workers.cluster.pod_needs import PodNeeds
from workers.cluster.pods.known_pod import KnownPod, decode_known_pod
from workers.cluster.pods.mirror_pods import MirrorPods
from workers.cluster.pods.pod_source import PodSource
from workers.cluster.pods.status_manager import StatusManager
from workers.cluster.pods.status_writer import StatusWriter
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import PODS
from workers.libpod.image_list import list_images

Send = Callable[[ClusterReport], Awaitable[None]]

log = logging.getLogger(__name__)


class ClusterAgent:
    """Both directions: the master's feed to the server, and the server's pods to the master."""

    def __init__(self, context: ChildContext, settings: ClusterSettings, send: Send, clock: Clock) -> None:
        node_name = context.settings.node_name
        self._context = context
        self._settings = settings
        self._send = send
        self._clock = clock
        burst = BatchGate()
        self._clients = NodeClients(settings, node_name, clock, burst)
        client = self._clients.work
        self._reported: set[str] = set()
        """UIDs of the cluster's pods in the feed."""
        self._up: asyncio.Queue[ClusterReport] = asyncio.Queue()
        self._statuses = StatusManager()
        self._writer = StatusWriter(client, self._statuses, clock, burst)
        self._mirrors = MirrorPods(client, node_name, self._statuses, clock)
        self._objects = Objects(
            client,
            self._up.put_nowait,
            clock,
            master=master_service(*settings.kubernetes_service) if settings.kubernetes_service else None,
            providers=context.settings.credential_providers,
        )
        images = functools.partial(list_images, context.settings.podman_socket)
        self._node = NodeSync(
            client,
            NodeObserver(context.settings, settings, context.board, images, clock),
            settings,
            node_name,
            clock,
            tell=self._up.put_nowait,
            node_seen=self._see_node,
            close_connections=client.close_connections,
            versions_fell=self._begin_anew,
        )
        self._needs = PodNeeds(self._objects, node_name, lambda: self._desired.labels, self._node.refresh)
        self._pods = PodSource(
            self._statuses,
            self._mirrors,
            self._needs,
            clock,
            self._up.put_nowait,
            self._writer.wake,
            burst.came,
        )
        self._reflector: Reflector[KnownPod] = Reflector(
            client,
            PODS,
            field_selector=f"spec.nodeName={node_name}",
            decode=decode_known_pod,
            sink=self._pods,
            says_timeout=False,
        )
        self._events = EventSender(self._clients.events, node_name, clock)
        self._started_at = 0.0
        self._is_synced = False
        self._desired = NodeStated()

    async def run(self) -> None:
        """Speak to the server for ever. To be cancelled; nothing that the server does or does not ends it."""
        async with asyncio.TaskGroup() as group:
            for name, loop in self._loops().items():
                group.create_task(restarted(loop, name=name), name=name)

    def _loops(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Work that goes on for ever, by its name."""
        return {
            "identity in the cluster": functools.partial(self._clients.identify, self._server_names),
            **self._node.loops(),
            "events": self._events.run,
            "pods of the cluster": self._follow_pods,
            "objects of pods": self._objects.run,
            "statuses of pods": self._writer.run,
            "mirror pods": self._mirrors.run,
            "reports to the master": self._report,
        }

    def _server_names(self) -> tuple[str, ...]:
        """Names of the node's server for its certificate: host name and addresses."""
        context = self._context
        return (context.settings.node_name, *(self._settings.node_ips or context.board.host_ips))

    async def _follow_pods(self) -> NoReturn:
        """As upstream after the Node was read: it says what pods may be admitted."""
        await self._node.synced.wait()
        await self._reflector.run()

    def _begin_anew(self) -> None:
        """The server's store was restored: a watch from a version that it does not have yet would be silent."""
        log.warning("the server's versions have fallen: everything is listed anew")
        self._reflector.begin_anew()
        self._objects.begin_anew()

    def _see_node(self, node: ClusterNode) -> None:
        stated = NodeStated(
            labels=dict(node.metadata.labels),
            annotations=dict(node.metadata.annotations),
            taints=node.spec.taints,
            unschedulable=node.spec.unschedulable,
            pod_cidrs=node.spec.pod_cidrs,
        )
        if stated != self._desired:
            self._desired = stated
            self._up.put_nowait(stated)

    async def _report(self) -> NoReturn:
        """Send up whatever is to go there, in order."""
        while True:
            await self._send(await self._up.get())

    # --- the master ----------------------------------------------------------------------------------------------

    def take(self, message: ClusterCommand) -> None:
        """Take what the master says to the cluster."""
        self._take(message)
        self._writer.wake()

    def _take(self, message: ClusterCommand) -> None:
        match message:
            case PodChanged():
                self._take_pod(message)
            case PodGone(uid=uid):
                self._reported.discard(uid)
                if not self._mirrors.gone(uid):
                    self._statuses.released(uid)
            case AgentChanged():
                self._started_at = message.started_at
                self._begin_events()
                self._node.take(message)
                if message.sources_ready:
                    self._mirrors.sources_ready()
            case EventChanged(event=event):
                self._events.take(self._named_as_there(event))
            case FeedSynced():
                self._is_synced = True
                self._begin_events()
            case RatesChanged():
                self._clients.change_rates(message)
            case PodsTaken():
                self._statuses.release_unknown(self._reported)
            case EventGone() | ObjectChanged() | ObjectGone():
                pass
            case _:
                assert_never(message)

    def _named_as_there(self, event: Event) -> Event:
        """The event about a static pod is one about its mirror."""
        name = self._mirrors.name_of(event.involved_object.uid)
        if not name:
            return event
        return msgspec.structs.replace(event, involved_object=msgspec.structs.replace(event.involved_object, name=name))

    def _begin_events(self) -> None:
        if self._is_synced and self._started_at:
            self._events.begin(self._started_at)

    def _take_pod(self, changed: PodChanged) -> None:
        uid = changed.pod.metadata.uid
        if changed.source == API_SOURCE:
            self._reported.add(uid)
            self._objects.decided(uid, is_refused=changed.status.phase in TERMINAL_PHASES)
            self._statuses.report(uid, changed, self._clock.now().mono)
        else:
            self._mirrors.report(changed)
