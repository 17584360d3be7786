"""Loads the node worker's part for a cluster, where this host is a node of one."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ipc.host.clock import Clock
from ipc.link.messages.cluster import ClusterCommand, ClusterReport
from ipc.link.wire.boot import ChildContext

if TYPE_CHECKING:
    from workers.cluster.agent import ClusterAgent


class ClusterHost:
    """Imports what speaks to a cluster when there is one: no other agent has any of it in memory."""

    def __init__(self, context: ChildContext, clock: Clock, send: Callable[[ClusterReport], Awaitable[None]]) -> None:
        self._context = context
        self._clock = clock
        self._send = send
        self._agent: ClusterAgent | None = None
        self._early: list[ClusterCommand] = []
        """Messages of the master that came before the import had ended."""

    def take(self, command: ClusterCommand) -> None:
        """Take what the master says to the cluster's part."""
        if self._agent is None:
            self._early.append(command)
        else:
            self._agent.take(command)

    async def run(self) -> None:
        """Speak to the cluster for ever, where there is one. To be cancelled. What fails in it ends the process, as
        the master's messages are told once."""
        settings = self._context.settings.cluster
        if settings is None:
            return
        # In a thread: an import takes 0.2 s of CPU, and the heartbeat must go on.
        module = await asyncio.to_thread(importlib.import_module, "workers.cluster.agent")
        agent: ClusterAgent = module.ClusterAgent(self._context, settings, self._send, self._clock)
        for command in self._early:
            agent.take(command)
        self._agent, self._early = agent, []
        await agent.run()
