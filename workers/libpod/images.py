"""Images in Podman's storage: inspects and lists of their users on the event loop; pulls, lists and removals by
podman-py.

podman-py is imported when the first image is pulled or images are listed, in the process that does it: nobody else has
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from ipc.host.libpod import endpoints
from ipc.host.libpod.endpoints import Endpoint
from ipc.k8s.podobjects.registry_login import RegistryLogin
from workers.kubecontainer import labels
from workers.kubecontainer.image_reference import parse_image_reference
from workers.kubecontainer.image_service import ImageInfo, ImageStamp, ImageUsage, ImageUser, ListedImage
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod import decode as libpod
from workers.libpod import decode_images
from workers.libpod.auth import LoginsError, login_header, read_logins
from workers.libpod.client import LibpodClient, Request, decoded
from workers.libpod.image_list import tried_while_things_go
from workers.libpod.line_stream import LineStream
from workers.podman_files.image_store import ImageStore

if TYPE_CHECKING:
    from workers.libpod.podman_py import PodmanPyCall


class LibpodImages:
    """`workers.kubecontainer.image_service.ImageService` on a libpod socket."""

    def __init__(
        self, client: LibpodClient, socket_path: str, instance: str, *, pull_timeout_s: float, auth_file: str
    ) -> None:
        """The client is for calls on the event loop. ``instance`` is the label value of the agent's own; ``auth_file``
        holds registry logins for the pulls, instead of those that the service finds by itself."""
        self._client = client
        self._socket_path = socket_path
        self._instance = instance
        self._pull_timeout_s = pull_timeout_s
        self._auth_file = auth_file
        self.store = ImageStore()
        self._streams: set[LineStream] = set()

    async def inspect_image(self, reference: str) -> ImageInfo | None:
        try:
            request = Request(endpoint=endpoints.INSPECT_IMAGE, name=reference)
            return await self._client.ask(request, decode_images.decode_image)
        except RuntimeCallError as error:
            if error.kind not in (ErrorKind.NOT_FOUND, ErrorKind.IMAGE_UNKNOWN):
                raise
            return None

    async def list_images(self) -> tuple[ListedImage, ...]:
        return await tried_while_things_go(self._list_images)

    async def _list_images(self) -> tuple[ListedImage, ...]:
        body = await self._by_podman_py(endpoints.LIST_IMAGES, {})
        return decoded(endpoints.LIST_IMAGES.call, body, decode_images.decode_images)

    async def list_image_users(self) -> tuple[ImageUser, ...]:
        request = Request(endpoint=endpoints.LIST_IMAGE_USERS, params={"all": "true", "external": "true"})
        listed = await tried_while_things_go(lambda: self._client.ask(request, decode_images.decode_image_users))
        found = []
        for user, theirs in listed:
            is_ours = theirs.get(labels.INSTANCE) == self._instance
            found.append(user if is_ours else await self._with_mounted_images(user))
        return tuple(found)

    async def _with_mounted_images(self, user: ImageUser) -> ImageUser:
        try:
            request = Request(endpoint=endpoints.INSPECT_MOUNTS, name=user.id)
            mounted = await self._client.ask(request, decode_images.decode_mounted_images)
        except RuntimeCallError as error:
            if error.kind is not ErrorKind.NOT_FOUND:  # it is gone, or another program's, which mounts no images
                raise
            return user
        return msgspec.structs.replace(user, images=(*user.images, *mounted))

    async def remove_image(self, image: ListedImage) -> None:
        # By its id Podman removes no image with several names.
        names = list(image.names) if len(image.names) > 1 else [image.id]
        params: dict[str, str | list[str]] = {"images": names, "noprune": "true"}
        body = await self._by_podman_py(endpoints.REMOVE_IMAGES, params)
        call = endpoints.REMOVE_IMAGES.call
        decoded(call, body, functools.partial(decode_images.check_images_removed, call))

    async def image_usage(self, layer: str) -> ImageUsage | None:
        if layer:
            self.store.learn_layer(layer)
        elif not self.store.root:
            self.store.learn_root(*await self._client.ask(Request(endpoint=endpoints.INFO), libpod.decode_store))
        return await asyncio.to_thread(self.store.read_usage)

    def image_stamp(self, having: str = "") -> ImageStamp | None:
        return self.store.stamp(having)

    async def pull_image(
        self, reference: str, on_progress: Callable[[str], None], login: RegistryLogin | None = None
    ) -> str:
        call = endpoints.PULL_IMAGE.call
        self._client.admit_stream(call)
        headers = await asyncio.to_thread(self._logins, reference, login)
        try:
            async with asyncio.timeout(self._pull_timeout_s), self._pull(reference, headers) as progress:
                report = await _last_line(progress, on_progress)
        except RuntimeCallError as error:
            # Until version 6 it answers 200 to every pull; now a registry's refusal is a 404 or a 500.
            if error.kind in (ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE):
                raise
            raise RuntimeCallError(ErrorKind.PULL, call, error.message) from error
        except TimeoutError as error:
            late = f"not done within {self._pull_timeout_s:g} s"
            raise RuntimeCallError(ErrorKind.TIMEOUT, call, late) from error
        except OSError as error:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, call, f"Podman broke the pull off: {error}") from error
        return decoded(call, report, decode_images.decode_pull)

    # --- podman-py ---

    async def _by_podman_py(self, endpoint: Endpoint[object], params: Mapping[str, str | list[str]]) -> bytes:
        """The answer to a call in a thread of its own, which ends with its deadline or when it is cancelled."""
        call, timeout_s = endpoint.call, self._client.timeout_s(endpoint.kind)
        self._client.admit_stream(call)
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._reading(lambda made: made.whole(endpoint, params)) as answer,
            ):
                return await answer.next() or b""
        except TimeoutError as error:
            raise RuntimeCallError(ErrorKind.TIMEOUT, call, f"no answer within {timeout_s:g} s") from error
        except OSError as error:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, call, f"the connection broke: {error}") from error

    def _pull(self, reference: str, headers: Mapping[str, str]) -> contextlib.AbstractAsyncContextManager[LineStream]:
        """The lines of a pull. Leaving the block closes its connection, which cancels it."""
        params = {"reference": reference, "policy": "always"}
        return self._reading(lambda made: made.lines(endpoints.PULL_IMAGE, params, headers))

    @contextlib.asynccontextmanager
    async def _reading(self, read: Callable[[PodmanPyCall], Iterator[bytes]]) -> AsyncIterator[LineStream]:
        """Pieces that a call through podman-py yields. Leaving the block closes its connection."""
        podman_py = await asyncio.to_thread(_podman_py_call, self._socket_path)
        stream = LineStream(lambda: read(podman_py), podman_py.break_off)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            await stream.close()

    def _logins(self, reference: str, login: RegistryLogin | None) -> dict[str, str]:
        """The pod's login, or the user's, which are read for every pull because they may change. In a thread."""
        if login is not None:
            return login_header(parse_image_reference(reference).domain, login)
        try:
            return read_logins(self._auth_file) if self._auth_file else {}
        except LoginsError as error:
            raise RuntimeCallError(ErrorKind.PULL, endpoints.PULL_IMAGE.call, str(error)) from error

    async def close(self) -> None:
        """Break off what podman-py does."""
        for stream in tuple(self._streams):
            await stream.close()


def _podman_py_call(socket_path: str) -> PodmanPyCall:
    """In a thread: the first import takes 0.3 s."""
    from workers.libpod.podman_py import PodmanPyCall

    return PodmanPyCall(socket_path)


async def _last_line(stream: LineStream, on_progress: Callable[[str], None]) -> bytes:
    """The report at the end of a pull; what comes before it is progress."""
    last = b""
    while (line := await stream.next()) is not None:
        last = line
        if words := decode_images.decode_progress(line):
            on_progress(words)
    return last
