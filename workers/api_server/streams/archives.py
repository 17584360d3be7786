"""GET and PUT of .../archive: files of a running container as a tar stream, in either direction, by Podman's storage.

The image needs no tar of its own (libpod pkg/api/handlers/compat/containers_archive.go).
"""

from __future__ import annotations

import base64
import binascii
import posixpath

from aiohttp import web

from ipc.link.wire.stream_channels import CHUNK_BYTES
from workers.api_server.core.query import flag
from workers.api_server.core.status_errors import ApiError, bad_request
from workers.api_server.store.bodies import tell_to_go_on
from workers.api_server.store.site import AppState, json_answer
from workers.api_server.streams.stream_target import Target, running_container
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

MAX_PATH_CHARS = 4096
"""Longest path within a container."""


class Archives:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Stream the path and all below it; with ``stat`` only say what it is."""
        target, path = await self._asked(request)
        try:
            if flag(request.query, "stat"):
                return json_answer(_stat(await self._site.podman.path_stat(target.id, path)))
            async with self._site.podman.archive(target.id, path) as pieces:
                response = web.StreamResponse()
                response.content_type = "application/x-tar"
                await response.prepare(request)
                async for piece in pieces:
                    await response.write(piece)
        except RuntimeCallError as error:
            raise _failure(error, path) from None
        await response.write_eof()
        return response

    async def put(self, request: web.Request) -> web.Response:
        """Unpack the body below the path, which is a directory."""
        target, path = await self._asked(request)
        await tell_to_go_on(request)
        try:
            await self._site.podman.extract(target.id, path, request.content.iter_chunked(CHUNK_BYTES))
        except RuntimeCallError as error:
            raise _failure(error, path) from None
        return web.Response(status=200)

    async def _asked(self, request: web.Request) -> tuple[Target, str]:
        path = request.query.get("path", "")
        if not path or len(path) > MAX_PATH_CHARS or "\0" in path:
            raise bad_request("path: must name a file or directory of the container")
        found = await self._site.pod(request)
        target = running_container(found.message, request.query.get("container", ""))
        if not path.startswith("/"):
            # As `kubectl cp`, whose tar begins there. Podman would take the path from the root.
            try:
                path = posixpath.join(await self._site.podman.working_directory(target.id), path)
            except RuntimeCallError as error:
                raise _failure(error, path) from None
        return target, posixpath.normpath(path)


def _stat(header: str) -> bytes:
    """JSON of what the path is, as Podman says it in a header. Raises ApiError 500 for what is none."""
    try:
        return base64.b64decode(header, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(500, "Podman has not said what the path is") from None


def _failure(error: RuntimeCallError, path: str) -> ApiError:
    if error.kind is ErrorKind.NOT_FOUND:
        return ApiError(404, f"{path}: no such file or directory in the container")
    return ApiError(500, f"{path}: {error}")
