"""The client of a node that may have to wait for its identity: for a kubeconfig that somebody else writes, or for the
certificate of its bootstrap (`workers.certificates.identity`)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping

from ipc.link.eventloop.batch import BatchGate
from workers.kubeclient.client import ApiClient
from workers.kubeclient.errors import Unreachable
from workers.kubeclient.protocol import DEFAULT_DEADLINE_S, JSON, NO_QUERY, Verb, WatchEvent


class EventualClient:
    """`workers.kubeclient.protocol.Client` that waits until there is one."""

    def __init__(self, pods: BatchGate) -> None:
        """``pods`` come from the server: while they do, nothing is asked of it. They go first."""
        self._pods = pods
        self._client: asyncio.Future[ApiClient] = asyncio.get_running_loop().create_future()

    def use(self, client: ApiClient) -> None:
        """From now on requests go there."""
        if self._client.done():
            self._client = asyncio.get_running_loop().create_future()
        self._client.set_result(client)

    async def request(
        self,
        verb: Verb,
        path: str,
        *,
        query: Mapping[str, str] = NO_QUERY,
        body: bytes | None = None,
        content_type: str = JSON,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> bytes:
        """See `Client.request`."""
        if not self._client.done():
            try:
                async with asyncio.timeout(deadline_s):
                    await asyncio.shield(self._client)
            except TimeoutError:
                raise Unreachable(f"{verb} {path}: this node has no identity yet") from None
        await self._pods.over()
        client = self._client.result()
        return await client.request(
            verb, path, query=query, body=body, content_type=content_type, deadline_s=deadline_s
        )

    async def watch(self, path: str, *, query: Mapping[str, str]) -> AsyncGenerator[WatchEvent, None]:
        """See `Client.watch`. Waits for an identity without end."""
        client = await asyncio.shield(self._client)
        async with contextlib.aclosing(client.watch(path, query=query)) as events:
            async for event in events:
                yield event

    def close_connections(self) -> None:
        """See `ApiClient.close_connections`."""
        if self._client.done():
            self._client.result().close_connections()
