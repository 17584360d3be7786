"""View of the node that holds for every pod: the settings, its resources, and how it is."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.eviction.signals import NodePressure
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.cluster import NodeStated
from ipc.link.messages.node_worker import RuntimeHealth
from supervisor.config.settings import Settings


class NodeView(msgspec.Struct, frozen=True):
    """The node at one moment."""

    settings: Settings
    resources: NodeResources
    pressures: tuple[NodePressure, ...] = ()
    """Conditions of pressure: their manager sets them, admission asks."""
    network_problem: str = ""
    """Why no pod can get a network of its own (pkg/kubelet/runtime.go, networkErrors)."""


class ThisNode:
    """Holder of the newest view."""

    def __init__(self, settings: Settings, resources: NodeResources) -> None:
        self.view = NodeView(settings, resources)

    def settings_changed(self, settings: Settings) -> None:
        self.view = msgspec.structs.replace(self.view, settings=settings)

    def pressures_changed(self, pressures: tuple[NodePressure, ...]) -> None:
        """Other conditions of pressure hold on the node."""
        self.view = msgspec.structs.replace(self.view, pressures=pressures)

    def on_node_stated(self, stated: NodeStated, now: Instant) -> None:
        """The cluster has told of its Node: pods that come are held against that, those that were admitted stay."""
        no_execute = tuple(taint for taint in stated.taints if taint.effect == "NoExecute")
        resources = msgspec.structs.replace(self.view.resources, labels=stated.labels, no_execute=no_execute)
        self.view = msgspec.structs.replace(self.view, resources=resources)

    def on_runtime_health(self, health: RuntimeHealth, now: Instant) -> None:
        """Syncs that failed for want of a network are tried again when their pause is over."""
        self.view = msgspec.structs.replace(self.view, network_problem=health.network_problem)
