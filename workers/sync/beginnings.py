"""Beginnings of containers that this worker's syncs wait for, until the master has them on the disk."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from ipc.k8s.kubecontainer.pod_status import RuntimeContainerStatus
from ipc.link.messages.pod_worker import BeginningKept, ContainerBegins

LONGEST_S: Final = 10.0
"""How long a start waits for it, in seconds. The master waits for its disk for half as long."""


class Beginnings:
    """Tells of each, and waits for its answer."""

    def __init__(self, send: Callable[[ContainerBegins], Awaitable[None]]) -> None:
        self._send = send
        self._waiting: dict[tuple[str, str], asyncio.Future[None]] = {}

    async def keep(self, uid: str, container: RuntimeContainerStatus) -> None:
        """Return when it is on the disk, or that takes too long: a container starts all the same."""
        key = (uid, container.id)
        kept = self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await self._send(ContainerBegins(uid=uid, container=container))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_S):
                    await kept
        finally:
            del self._waiting[key]

    def kept(self, answer: BeginningKept) -> None:
        kept = self._waiting.get((answer.uid, answer.id))
        if kept is not None and not kept.done():
            kept.set_result(None)
