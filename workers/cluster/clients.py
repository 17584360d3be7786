"""Clients by which a node speaks to its cluster: one for its work, and one for events, which have a rate limit of their
own (cmd/kubelet/app/server.go, KubeClient and EventClient)."""

from __future__ import annotations

from collections.abc import Callable

from ipc.host.clock import Clock
from ipc.link.eventloop.batch import BatchGate
from ipc.link.messages.cluster import RatesChanged
from ipc.link.wire.cluster_settings import ClusterSettings
from workers.certificates.identity import NodeIdentity
from workers.cluster.eventual_client import EventualClient
from workers.kubeclient.client import USER_AGENT
from workers.kubeclient.rate_limit import RateLimit
from workers.kubeclient.request_metrics import RequestMetrics


class NodeClients:
    """Both clients, their rate limits, and the node's identity, for which they wait."""

    def __init__(self, settings: ClusterSettings, node_name: str, clock: Clock, pods: BatchGate) -> None:
        """``pods`` come from the server: while they do, nothing is asked of it."""
        self.work, self.events = EventualClient(pods), EventualClient(pods)
        self._limit = RateLimit(settings.api_qps, settings.api_burst)
        self._event_limit = RateLimit(settings.event_qps, settings.event_burst)
        self._identity, self._event_identity = (
            NodeIdentity(settings, node_name, clock, user_agent=USER_AGENT, limit=limit, observer=RequestMetrics())
            for limit in (self._limit, self._event_limit)
        )

    async def identify(self, server_names: Callable[[], tuple[str, ...]]) -> None:
        """Get an identity and keep it valid. ``server_names`` are those of the node's server, for its certificate."""
        client = await self._identity.client()
        self.work.use(client)
        self.events.use(await self._event_identity.client())
        await self._identity.run(client, server_names)

    def change_rates(self, rates: RatesChanged) -> None:
        """Limit both as is stated from now on."""
        self._limit.change(rates.api_qps, rates.api_burst)
        self._event_limit.change(rates.event_qps, rates.event_burst)
