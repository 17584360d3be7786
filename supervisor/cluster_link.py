"""The master's part in the cluster: what it takes from the process that speaks to it. Made only on a host that is a
node of one."""

from __future__ import annotations

from ipc.messages.cluster import RatesChanged
from supervisor.config.cluster_section import cluster_settings
from supervisor.config.settings import Settings
from supervisor.sources.api_source import ApiChange, ApiSource


class ClusterLink:
    """The source ``api``."""

    def __init__(self) -> None:
        self.api = ApiSource()

    def begins(self) -> None:
        """The cluster's process has come up: what it states from here on is a set of its own."""
        self.api.begin()

    def take(self, statement: ApiChange) -> None:
        """Take a statement of that process."""
        self.api.take(statement)


def rates(settings: Settings) -> RatesChanged | None:
    """The rates of requests in the settings; None without a cluster."""
    cluster = cluster_settings(settings)
    if cluster is None:
        return None
    return RatesChanged(
        api_qps=cluster.api_qps,
        api_burst=cluster.api_burst,
        event_qps=cluster.event_qps,
        event_burst=cluster.event_burst,
    )
