"""The images in Podman's storage, on a connection of their own: for processes that ask Podman for nothing else."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from ipc.nodestatus.images import StoredImage
from ipc.wire.http_answer import TooLargeError
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod import failures
from workers.libpod.client import Kind, Request, message, transport_error
from workers.libpod.connection import Connection

TIMEOUT_S: Final = 30.0
"""For the whole list, in seconds."""
MAX_LIST_BYTES: Final = 8 << 20
"""Largest list that is read."""
_LIST: Final = Request(call="list images", method="GET", path="images/json", kind=Kind.EXEC)
_NO_REUSE: Final = {"Connection": "close"}


class _Image(msgspec.Struct, frozen=True, rename="pascal"):
    """One of GET images/json."""

    id: str
    size: int = 0
    repo_tags: tuple[str, ...] | None = None
    repo_digests: tuple[str, ...] | None = None


def decode_image_list(body: bytes) -> tuple[StoredImage, ...]:
    """Images of an answer. Raises msgspec.MsgspecError."""
    return tuple(
        StoredImage(
            id=image.id, size=image.size, repo_tags=image.repo_tags or (), repo_digests=image.repo_digests or ()
        )
        for image in msgspec.json.decode(body, type=tuple[_Image, ...])
    )


async def list_images(socket_path: str) -> tuple[StoredImage, ...]:
    """All images that have a size. Takes Podman a millisecond for each. Raises RuntimeCallError."""
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
    return decode_image_list(body)
