"""Keeps the Node in the cluster: registered, with a lease, its status as it is here (kubelet_node_status.go).

As upstream, a Node that somebody deletes is not made again until the agent starts anew: who deletes it wants the host
out of the cluster. Its pods run on until the cluster says otherwise. A Node that an older backup of the server lacks is
made again: nobody has deleted it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Final, NoReturn

import msgspec

from ipc.host.clock import Clock, rfc3339
from ipc.host.log.last_words import LastWords
from ipc.k8s.nodestatus.conditions import READY, TRUE, statuses_of
from ipc.link.messages.api_server import AgentChanged
from ipc.link.messages.base import EventReport, node_event
from ipc.link.messages.event_reasons import node_status
from ipc.link.wire.cluster_settings import ClusterSettings
from workers.cluster.node.csi_node import CsiNodeController
from workers.cluster.node.facts import NodeFacts, status_of
from workers.cluster.node.initial_node import initial_node
from workers.cluster.node.lease import LeaseController
from workers.cluster.node.observer import NodeObserver
from workers.cluster.node.patch import node_patch
from workers.cluster.node.reconcile import with_system_labels
from workers.cluster.node.registration import register
from workers.cluster.node.report_schedule import ReportSchedule, status_has_changed
from workers.cluster.node.types import ClusterNode, decode_node
from workers.kubeclient.errors import ApiError, ClusterError
from workers.kubeclient.protocol import STRATEGIC_MERGE_PATCH, Client
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import NODES

MAX_UPDATES: Final = 5
"""Tries of one update of the status (nodeStatusUpdateRetry)."""
JITTER: Final = 0.04
FAST_PERIOD_S: Final = 0.1
"""Between looks at the node until it is ready for the first time (fastStatusUpdateOnce)."""
FAST_TIME_S: Final = 120.0
"""How long that goes on (nodeReadyGracePeriod)."""
RUNTIME_WAIT_S: Final = 5.0
"""How long a registration waits for Podman, whose version and images a new Node tells. Upstream's kubelet does not
start at all without its runtime (pkg/kubelet/kubelet.go, PreInitRuntimeService); here the Node is made, and is not
ready."""
NODE_SCHEDULABLE: Final = "NodeSchedulable"
NODE_NOT_SCHEDULABLE: Final = "NodeNotSchedulable"
QUERY: Final[Mapping[str, str]] = {"timeout": "10s"}

_log: Final = logging.getLogger(__name__)


class NodeSync:
    """The Node of this host. `loops` run side by side, for ever."""

    def __init__(
        self,
        client: Client,
        observer: NodeObserver,
        settings: ClusterSettings,
        node_name: str,
        clock: Clock,
        *,
        tell: Callable[[EventReport], None],
        node_seen: Callable[[ClusterNode], None],
        close_connections: Callable[[], None],
        versions_fell: Callable[[], None] = lambda: None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """``node_seen`` is called with each state of the Node that the server tells. ``close_connections`` is called
        when heartbeats fail again and again, ``versions_fell`` when the server's store was restored from a backup."""
        self._client = client
        self._observer = observer
        self._settings = settings
        self._name = node_name
        self._clock = clock
        self._tell = tell
        self._node_seen = node_seen
        self._close_connections = close_connections
        self._chance = chance
        self._schedule = ReportSchedule(settings.status_report_s, chance)
        self._wake = asyncio.Event()
        self._node: ClusterNode | None = None
        self._was_unschedulable = False
        self._was_restored = False
        """The server's store was restored, and has not told of the Node since."""
        self._must_register = settings.register_node
        self._failures = LastWords()
        self._csi = CsiNodeController(client)
        self._reflector = Reflector(
            client,
            NODES,
            name=node_name,
            decode=functools.partial(decode_node, name=node_name),
            sink=self,
            versions_fell=self._see_restore,
        )
        self._lease = LeaseController(
            client,
            node_name,
            settings.lease_duration_s,
            clock,
            node_uid=lambda: self._node.metadata.uid if self._node else "",
            on_repeated_failure=close_connections,
            chance=chance,
            versions_fell=self._begin_anew,
        )
        self._versions_fell = versions_fell

    @property
    def synced(self) -> asyncio.Event:
        """Set once the server has told of the Node, or that there is none: the pods' source begins after that."""
        return self._reflector.synced

    @property
    def node(self) -> ClusterNode | None:
        """The Node as the server told of it last."""
        return self._node

    def loops(self) -> Mapping[str, Callable[[], Coroutine[None, None, NoReturn]]]:
        """Work of this room, by name."""
        return {"own node": self._reflector.run, "node lease": self._lease.run, "node status": self._keep_status}

    def _begin_anew(self) -> None:
        self._reflector.begin_anew()
        self._see_restore()

    def _see_restore(self) -> None:
        self._was_restored = True
        self._versions_fell()

    def take(self, agent: AgentChanged) -> None:
        """The agent's state as the master tells it."""
        if self._observer.take(agent):
            self._wake.set()

    # --- what the server tells (`ReflectorSink`) ---

    def replaced(self, items: Sequence[ClusterNode]) -> None:
        """The one Node, or none."""
        if items:
            self.changed(items[0])
        else:
            self._node = None
            if self._was_restored and self._settings.register_node:
                _log.warning("the server's store was restored and lacks node %s: it is registered again", self._name)
                self._must_register = True
                self._wake.set()
        self._was_restored = False

    def changed(self, item: ClusterNode) -> None:
        """A state of the Node: of a cordon an event, as upstream; pods stay."""
        before, self._node = self._node, item
        if item.spec.unschedulable is not self._was_unschedulable:
            self._was_unschedulable = item.spec.unschedulable
            self._report(NODE_NOT_SCHEDULABLE if item.spec.unschedulable else NODE_SCHEDULABLE)
        if item.metadata.deletion_timestamp and not (before and before.metadata.deletion_timestamp):
            _log.warning("node %s is being deleted in the cluster; its pods run on until they are deleted", self._name)
        self._node_seen(item)

    async def refresh(self) -> None:
        """Ask for the Node, and tell of it. One that cannot be read stays as it was told."""
        try:
            found = decode_node(await self._client.request("GET", NODES.path(name=self._name), query=QUERY), self._name)
        except (ClusterError, ValueError) as error:
            _log.warning("the Node cannot be read anew: %s", error)
        else:
            self._node_seen(found)

    def deleted(self, item: ClusterNode) -> None:
        """The Node is gone."""
        self._node = None
        _log.warning("node %s was deleted in the cluster: `rootlet` registers it again when it starts anew", self._name)

    def _report(self, reason: str) -> None:
        self._tell(node_event(self._name, node_status(reason), f"Node {self._name} status is now: {reason}"))

    # --- the status ---

    async def _keep_status(self) -> NoReturn:
        fast_until = self._clock.now().mono + FAST_TIME_S
        while True:
            if self._must_register:
                self._must_register = False
                await self._observer.wait_for_runtime(RUNTIME_WAIT_S)
                await register(self._client, self._initial)
                fast_until = self._clock.now().mono + FAST_TIME_S
            self._wake.clear()
            was_sent = await self.sync()
            if self._is_ready():
                fast_until = 0.0
            is_fast = was_sent and self._clock.now().mono < fast_until
            await self._pause(FAST_PERIOD_S if is_fast else self._period_s())

    async def _initial(self) -> ClusterNode:
        return initial_node(await self._observer.facts(), self._settings, self._now())

    async def _pause(self, seconds: float) -> None:
        """Until then, or until the agent tells of a change."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def _period_s(self) -> float:
        return self._settings.status_update_s * (1 + JITTER * self._chance())

    def _is_ready(self) -> bool:
        return self._node is not None and statuses_of(self._node.status.conditions).get(READY) == TRUE

    async def sync(self) -> bool:
        """Send the status if it has to be sent (updateNodeStatus); False when the server did not take it: then the next
        period tries again."""
        facts = await self._observer.facts()
        for tries in range(MAX_UPDATES):
            try:
                await self._update(facts, from_cache=tries == 0)
            except (ClusterError, ValueError) as error:
                self._log_failure(str(error))
                if isinstance(error, ApiError) and error.is_not_found:
                    return False
                if tries:
                    self._close_connections()
            else:
                self._failures.forget()
                await self._csi.ensure(self._node)
                return True
        return False

    def _log_failure(self, words: str) -> None:
        """The same words once in a row: a server may be away for hours."""
        level = logging.WARNING if self._failures.are_new(words) else logging.DEBUG
        _log.log(level, "the node's status is not sent: %s", words)

    async def _update(self, facts: NodeFacts, *, from_cache: bool) -> None:
        path = NODES.path(name=self._name)
        before = self._node if from_cache else None
        if before is None:
            before = decode_node(await self._client.request("GET", path, query=QUERY), self._name)
        status = status_of(before.status, facts, self._now())
        after = with_system_labels(msgspec.structs.replace(before, status=status), facts.host)
        is_changed = status_has_changed(before.status, status) or after.metadata != before.metadata
        now = self._clock.now().mono
        if not (is_changed or self._schedule.is_due(now)):
            return
        if not (patch := node_patch(before, after)):  # the server had it within this second
            return
        body = msgspec.json.encode(patch)
        answer = await self._client.request(
            "PATCH", f"{path}/status", query=QUERY, body=body, content_type=STRATEGIC_MERGE_PATCH
        )
        self._schedule.reported(now, changed=is_changed)
        self.changed(decode_node(answer, self._name))

    def _now(self) -> str:
        return rfc3339(self._clock.now().wall)
