"""Puts together what is known of the node: the agent's feed, the board, the host's files, Podman's images."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final

from ipc.host.clock import Clock
from ipc.host.log.last_words import LastWords
from ipc.host.network_addresses import addresses_of
from ipc.k8s.nodestatus.conditions import TRUE
from ipc.k8s.nodestatus.node_ip import node_ip_on_host_problem
from ipc.link.messages.api_server import AgentChanged
from ipc.link.shm.board import Board
from ipc.link.wire.boot import WorkerSettings
from ipc.link.wire.cluster_settings import ClusterSettings
from workers.cluster.node.facts import NodeFacts
from workers.kubecontainer.runtime import RuntimeCallError
from workers.nodestatus.images import StoredImage
from workers.nodestatus.machine import node_limits
from workers.nodestatus.readiness import ready_errors
from workers.nodestatus.version import HostVersions
from workers.stats.machine import read_machine, read_versions, usable_machine
from workers.statsapi.machine_info import MachineInfo

HOST_PERIOD_S: Final = 300.0
"""How often hardware and versions are read (pkg/kubelet/kubelet.go, updateMachineInfo by cAdvisor: every 5 minutes)."""
IMAGES_PERIOD_S: Final = 60.0
"""How often Podman is asked for its images (upstream: 30 s), of which each takes it a millisecond."""
IMAGES_RETRY_S: Final = 10.0
"""After how long it is asked again when it had no answer: it has none while somebody else removes an image."""

Images = Callable[[], Awaitable[tuple[StoredImage, ...]]]

_log: Final = logging.getLogger(__name__)


class NodeObserver:
    """Facts for each status. Slow ones are kept for a while."""

    def __init__(
        self, settings: WorkerSettings, cluster: ClusterSettings, board: Board, images: Images, clock: Clock
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._board = board
        self._ask_images = images
        self._clock = clock
        self._agent: AgentChanged | None = None
        self._known = asyncio.Event()
        self._runtime_answers = asyncio.Event()
        self._host: tuple[MachineInfo, HostVersions] | None = None
        self._host_at = 0.0
        self._images: tuple[StoredImage, ...] = ()
        self._images_due_at = 0.0
        self._problems = LastWords()

    def take(self, agent: AgentChanged) -> bool:
        """The agent's state as the master tells it; whether the node's status is another one now."""
        before, self._agent = self._agent, agent
        self._known.set()
        if agent.runtime_healthy and not self._runtime_answers.is_set():
            self._runtime_answers.set()
            self._images_due_at = 0.0
        return before is None or _relevant(before) != _relevant(agent)

    async def wait_for_runtime(self, seconds: float) -> None:
        """Return once Podman has answered the agent, or after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._runtime_answers.wait()
        except TimeoutError:
            return

    async def facts(self) -> NodeFacts:
        """Facts of this moment. Waits until the agent has told of itself."""
        await self._known.wait()
        agent, now = self._agent, self._clock.now().mono
        assert agent is not None, "the event is set with it"
        machine, versions = await self._read_host(now)
        last = self._board.last_relist
        return NodeFacts(
            name=self._settings.node_name,
            host=versions,
            machine=machine,
            limits=node_limits(self._settings.node, self._settings.max_pods, agent.unhealthy_devices),
            addresses=self._addresses(),
            port=self._settings.server.secure_port,
            runtime_version=agent.runtime_version,
            agent_version=agent.version,
            images=await self._read_images(now),
            handlers=tuple(self._settings.runtimes),
            pressures=frozenset(each.type for each in agent.conditions if each.status == TRUE),
            errors=ready_errors(
                runtime_problem="" if agent.runtime_healthy else agent.runtime_message or "Podman does not answer",
                network_problem=agent.network_problem,
                going_down=agent.going_down,
                relist_age_s=now - last if last else None,
                quiet_period_s=self._settings.quiet_relist_period_s,
            ),
            network_scope=self._cluster.network_scope,
        )

    async def _read_host(self, now: float) -> tuple[MachineInfo, HostVersions]:
        if self._host is None or now - self._host_at >= HOST_PERIOD_S:
            self._host = await asyncio.to_thread(lambda: (usable_machine(read_machine()), read_versions()))
            self._host_at = now
        return self._host

    async def _read_images(self, now: float) -> tuple[StoredImage, ...]:
        """Podman's images; while it does not answer, the last ones."""
        if now >= self._images_due_at:
            try:
                self._images = await self._ask_images()
                self._images_due_at = now + IMAGES_PERIOD_S
            except RuntimeCallError as error:
                self._images_due_at = now + IMAGES_RETRY_S
                _log.debug("no images for the node's status: %s", error)
        return self._images

    def _addresses(self) -> tuple[str, ...] | None:
        """None, and told once, when the host does not have what the configuration says."""
        present = addresses_of(os.getpid()) if self._cluster.node_ips else ()
        problems = [node_ip_on_host_problem(each, present) for each in self._cluster.node_ips]
        problem = next(filter(None, problems), "")
        if self._problems.are_new(problem):
            _log.error("the node's addresses stay as they are: %s", problem)
        return None if problem else self._board.host_ips


def _relevant(agent: AgentChanged) -> tuple[object, ...]:
    pressures = tuple((each.type, each.status) for each in agent.conditions)
    devices = dict(agent.unhealthy_devices)
    runtime = agent.runtime_healthy, agent.runtime_message, agent.runtime_version, agent.network_problem
    return runtime, agent.going_down, pressures, devices
