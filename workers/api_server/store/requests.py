"""Changes that clients ask for, as messages to the master. Reads never come here."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Final

from ipc.link.messages.api_server import AdminRequest, ApiServerFeed, ApiServerRequest, Reply
from ipc.link.wire.channel import Channel, ChannelClosed
from ipc.link.wire.framing import FrameTooLarge
from workers.api_server.core.status_errors import ApiError, too_many, unavailable

MAX_PENDING_REQUESTS: Final = 64
"""Most requests that wait for the master's reply."""
REPLY_TIMEOUT_S: Final = 30.0
"""How long the master may take for a reply; afterwards whether it happened is unknown."""


class MasterRequests:
    """Sends requests over the link and hands each reply to the one who waits for it."""

    def __init__(
        self,
        channel: Channel[ApiServerRequest, ApiServerFeed],
        *,
        max_pending: int = MAX_PENDING_REQUESTS,
        timeout_s: float = REPLY_TIMEOUT_S,
    ) -> None:
        self._channel = channel
        self._max_pending = max_pending
        self._timeout_s = timeout_s
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}

    async def ask(self, make: Callable[[int], AdminRequest], *, timeout_s: float | None = None) -> Reply:
        """Send what ``make`` makes of a fresh request_id and wait for the reply, for a time of its own if need be.

        Raises ApiError: 429 when too many wait already, 413, 503 when the master is gone, 504 at the deadline.
        """
        if len(self._waiting) >= self._max_pending:
            raise too_many(f"{len(self._waiting)} requests wait for the master already")
        request_id, timeout_s = next(self._ids), timeout_s or self._timeout_s
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = reply
        try:
            async with asyncio.timeout(timeout_s):
                await self._channel.send(make(request_id))
                return await reply
        except TimeoutError:
            raise ApiError(504, f"no reply within {timeout_s:g} s: whether it was done is unknown") from None
        except FrameTooLarge as error:
            raise ApiError(413, str(error)) from None
        except ChannelClosed:
            raise unavailable("the agent is stopping") from None
        finally:
            del self._waiting[request_id]

    def answered(self, reply: Reply) -> None:
        """A reply has come. One that nobody waits for any more is dropped."""
        waiter = self._waiting.get(reply.request_id)
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def abandon(self) -> None:
        """No replies will come any more: everyone who waits is told."""
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(ChannelClosed("the master is gone"))
