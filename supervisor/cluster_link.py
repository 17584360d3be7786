"""What the master takes from the process that speaks to the cluster. Made only on a host that is a node of one."""

from __future__ import annotations

from typing import assert_never

from ipc.messages.cluster import (
    NodeStated,
    ObjectStated,
    ObjectWithdrawn,
    PodsListed,
    PodStated,
    PodWithdrawn,
)
from supervisor.sources.api_source import ApiChange, ApiSource


class ClusterLink:
    """The source ``api``, and the Node as the cluster has it."""

    def __init__(self) -> None:
        self.api = ApiSource()
        self.node = NodeStated()
        """Without anything before it was read."""

    def begins(self) -> None:
        """The cluster's process has come up: what it states from here on is a set of its own."""
        self.api.begin()

    def take(self, statement: ApiChange | NodeStated) -> None:
        """Take a statement of that process."""
        match statement:
            case PodStated() | PodWithdrawn() | PodsListed() | ObjectStated() | ObjectWithdrawn():
                self.api.take(statement)
            case NodeStated():
                self.node = statement
            case _:
                assert_never(statement)
