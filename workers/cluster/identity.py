"""The client of a node that may have to wait for its identity: for a kubeconfig that somebody else writes, or for the
certificate of its bootstrap."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Final

from ipc.kubeconfig.decode import decode_kubeconfig
from ipc.kubeconfig.types import ClusterAccess, KubeconfigError
from workers.kubeclient.client import ApiClient
from workers.kubeclient.errors import Unreachable
from workers.kubeclient.protocol import DEFAULT_DEADLINE_S, JSON, NO_QUERY, Verb, WatchEvent

RETRY_S: Final = 10.0
"""After which a kubeconfig that cannot be used is read again, in seconds."""

log = logging.getLogger(__name__)


class EventualClient:
    """`workers.kubeclient.protocol.Client` that waits until there is one."""

    def __init__(self) -> None:
        self._client: asyncio.Future[ApiClient] = asyncio.get_running_loop().create_future()

    def use(self, client: ApiClient) -> None:
        """From now on requests are made. Called once."""
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


async def await_kubeconfig(path: str) -> ClusterAccess:
    """Access of a kubeconfig, when it is there and can be used."""
    told = ""
    while True:
        try:
            data = await asyncio.to_thread(Path(path).read_bytes)
            return decode_kubeconfig(data, os.path.dirname(path))
        except (OSError, KubeconfigError) as error:
            words = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            log.log(logging.DEBUG if words == told else logging.ERROR, "kubeconfig %s: %s", path, words)
            told = words
        await asyncio.sleep(RETRY_S)
