"""The images in Podman's storage, on a connection of their own: for processes that ask Podman for nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from ipc.host.libpod import endpoints
from ipc.link.wire.http_answer import TooLargeError
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod import failures
from workers.libpod.client import Request, message, transport_error
from workers.libpod.connection import Connection
from workers.libpod.decode_images import decode_stored_images
from workers.nodestatus.images import StoredImage

TIMEOUT_S: Final = 30.0
"""For the whole list, in seconds."""
MAX_LIST_BYTES: Final = 8 << 20
"""Largest list that is read."""
LIST_TRIES: Final = 5
"""How often a list of everybody's images or containers is tried while some of them go."""
_GONE: Final = ("image not known", "container not known")
"""Errors of such a list."""
_LIST: Final = Request(endpoint=endpoints.LIST_IMAGES)
_NO_REUSE: Final = {"Connection": "close"}

T = TypeVar("T")


async def tried_while_things_go(make_list: Callable[[], Awaitable[T]]) -> T:
    """A list that Podman fails to make when one of the things goes meanwhile."""
    for _ in range(LIST_TRIES - 1):
        try:
            return await make_list()
        except RuntimeCallError as error:
            if not any(words in error.message for words in _GONE):
                raise
    return await make_list()


async def list_images(socket_path: str) -> tuple[StoredImage, ...]:
    """All images that have a size. Takes Podman a millisecond for each. Raises RuntimeCallError."""
    return await tried_while_things_go(lambda: _list_once(socket_path))


async def _list_once(socket_path: str) -> tuple[StoredImage, ...]:
    connection: Connection | None = None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            connection = Connection(socket_path)
            await connection.send(message(_LIST, _NO_REUSE))
            status = await connection.head()
            body = await connection.body(MAX_LIST_BYTES)
    except TimeoutError:
        raise RuntimeCallError(ErrorKind.TIMEOUT, _LIST.call, f"no answer within {TIMEOUT_S:g} s") from None
    except (OSError, TooLargeError) as error:
        raise transport_error(_LIST, error) from None
    finally:
        if connection is not None:
            connection.close()
    if status >= 400:
        raise failures.call_error(_LIST.call, status, body)
    return decode_stored_images(body)
