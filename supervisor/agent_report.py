"""The agent about itself: the line of its start, and its state as the API server and a cluster have it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ipc.k8s.nodestatus.conditions import statuses_of
from ipc.link.messages.api_server import AgentChanged
from supervisor.control.configuration import Configuration
from supervisor.control.shutdown_control import ShutdownControl
from supervisor.host_watch import HostWatch
from supervisor.loop.loop import SyncLoop
from supervisor.processes.child_manager import ChildManager
from supervisor.processes.podman_health import PodmanHealth
from supervisor.processes.podman_service import PodmanService
from supervisor.processes.worker_pool import fed_slots
from supervisor.sources.manager import SourceManager
from supervisor.version import VERSION


def start_line(configuration: Configuration, service: PodmanService) -> str:
    """The agent in one line."""
    settings = configuration.settings
    return (
        f"Rootlet v{VERSION} starts: configuration {configuration.path or 'all defaults'}, "
        f"instance {settings.instance_name}, node {settings.node_name}, pid {os.getpid()}, "
        f"socket {settings.admin_socket}, Podman's service {'of its own' if service.argv else service.socket}"
    )


class AgentReport:
    """Reads every part of the master, and changes none."""

    def __init__(
        self,
        configuration: Configuration,
        loop: SyncLoop,
        sources: SourceManager,
        children: ChildManager,
        podman: PodmanHealth,
        shutdown: ShutdownControl,
        host: HostWatch,
        *,
        started_at: float,
    ) -> None:
        """``started_at`` is a wall time."""
        self._configuration = configuration
        self._loop = loop
        self._sources = sources
        self._children = children
        self._podman = podman
        self._shutdown = shutdown
        self._host = host
        self._started_at = started_at
        self._reported_conditions: Mapping[str, str] = {}

    def send_if_stale(self) -> None:
        """Send when a condition of the node has changed since, of which the sync loop tells nobody."""
        if self._reported_conditions != statuses_of(self._loop.node_conditions):
            self.send()

    def send(self) -> None:
        """Send the agent's state to the children that tell others of it."""
        settings, podman, conditions = self._configuration.settings, self._podman.newest, self._loop.node_conditions
        self._reported_conditions = statuses_of(conditions)
        state = AgentChanged(
            version=VERSION,
            instance=settings.instance_name,
            node_name=settings.node_name,
            pid=os.getpid(),
            started_at=self._started_at,
            runtime_version=podman.version,
            runtime_healthy=podman.healthy,
            runtime_message=podman.message,
            runtime_silent_since=self._podman.silent_since,
            network_problem=podman.network_problem,
            config_file="" if self._configuration.path is None else os.path.abspath(self._configuration.path),
            sources_ready=self._sources.all_ready,
            going_down=self._shutdown.cause,
            sync_frequency_s=float(settings.sync_frequency_s),  # msgspec encodes no subclass of float
            workers=self._children.infos(self._loop.pods_per_slot()),
            conditions=conditions,
            unhealthy_devices=self._host.unhealthy_devices,
        )
        for slot in fed_slots(is_member=settings.cluster.is_configured):
            self._children.send(slot, state)
