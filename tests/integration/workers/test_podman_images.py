"""Lists and removals of images against services that answer oddly or not at all: real sockets, podman-py's client."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from socket import socket as Socket
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.libpod_service import service
from workers.kubecontainer.image_service import ImageUser, ListedImage
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.client import CallLimits
from workers.libpod.image_list import LIST_TRIES, list_images
from workers.libpod.streams import PodmanStreams
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.timeout(30)

ONE = ListedImage(id="a" * 64, names=("quay.io/a/b:1",))
TWO = ListedImage(id="a" * 64, names=("quay.io/a/b:1", "quay.io/a/b:2"))
WENT = {"cause": "image not known", "message": "retrieving label for image: image not known", "response": 500}
OURS = {"rootlet.dev/instance": "one"}
DEADLINE_S = 30.0
T = TypeVar("T")


def answer(body: object, status: int = 200) -> bytes:
    encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(encoded), encoded)


def always(*answers: bytes) -> Callable[[Socket, int], bool]:
    """Each request gets the next of these, those beyond the last one."""

    def reply(connection: Socket, number: int) -> bool:
        connection.sendall(answers[min(number, len(answers)) - 1])
        return True

    return reply


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "podman.sock"


async def ask(path: Path, call: Callable[[PodmanRuntime], Awaitable[T]], **options: Any) -> T:
    runtime = PodmanRuntime(str(path), "one", **options)
    try:
        return await call(runtime)
    finally:
        await runtime.close()


async def failure(path: Path, call: Callable[[PodmanRuntime], Awaitable[object]], **options: Any) -> RuntimeCallError:
    with pytest.raises(RuntimeCallError) as caught:
        await ask(path, call, **options)
    return caught.value


async def test_images_are_listed_with_all_their_names(path: Path) -> None:
    listed = [
        {"Id": "1", "Names": ["a:1"], "RepoTags": ["a:1"], "RepoDigests": ["a@sha256:0"], "Size": 5},
        {"Id": "sha256:2", "RepoTags": ["b:1"], "RepoDigests": None, "ReadOnly": True},
        {"Id": "3", "RepoTags": None, "Names": None},
    ]
    with service(path, always(answer(listed))) as requests:
        found = await ask(path, PodmanRuntime.list_images)
    assert found == (
        ListedImage(id="1", names=("a:1",), digests=("a@sha256:0",), size_bytes=5),
        ListedImage(id="2", names=("b:1",), is_read_only=True),
        ListedImage(id="3"),
    )
    assert requests == ["GET /v4.0.0/libpod/images/json"]


async def test_a_list_is_tried_again_while_images_go(path: Path) -> None:
    gone = answer(WENT, 500)
    with service(path, always(*[gone] * (LIST_TRIES - 1), answer([]))) as requests:
        assert await ask(path, PodmanRuntime.list_images) == ()
        assert len(requests) == LIST_TRIES
    with service(path, always(gone)):
        assert (await failure(path, PodmanRuntime.list_images)).kind is ErrorKind.IMAGE_UNKNOWN


@pytest.mark.parametrize("make_list", [list_images, lambda path: PodmanStreams(path).images()])
async def test_so_are_the_lists_for_the_status_of_the_node(
    path: Path, make_list: Callable[[str], Awaitable[Any]]
) -> None:
    gone = answer(WENT, 500)
    with service(path, always(gone, answer([]))):
        assert await make_list(str(path)) == ()
    with service(path, always(gone)), pytest.raises(RuntimeCallError) as caught:
        await make_list(str(path))
    assert caught.value.kind is ErrorKind.IMAGE_UNKNOWN


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'[{"Id'])
async def test_a_list_of_another_shape_is_an_error(path: Path, body: bytes) -> None:
    with service(path, always(answer(body))):
        assert (await failure(path, PodmanRuntime.list_images)).kind is ErrorKind.INTERNAL


async def test_a_service_that_hangs_is_left_at_the_deadline(path: Path) -> None:
    let_go = threading.Event()

    def hang(connection: Socket, number: int) -> bool:
        let_go.wait(2 * DEADLINE_S)
        return False

    with service(path, hang):
        error = await failure(path, PodmanRuntime.list_images, limits=CallLimits(request_timeout_s=0.2))
        let_go.set()
    assert error.kind is ErrorKind.TIMEOUT


async def test_a_call_that_is_cancelled_leaves_no_thread(path: Path) -> None:
    begun, let_go, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    def hang(connection: Socket, number: int) -> bool:
        loop.call_soon_threadsafe(begun.set)
        let_go.wait(2 * DEADLINE_S)
        return False

    with service(path, hang):
        removing = asyncio.create_task(ask(path, lambda runtime: runtime.remove_image(ONE)))
        await begun.wait()
        removing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await removing
        for thread in threading.enumerate():
            if thread.name == "line-stream":
                await asyncio.to_thread(thread.join, DEADLINE_S)
                assert not thread.is_alive(), "the service still hangs"
        let_go.set()


@pytest.mark.parametrize(
    ("image", "named"), [(ONE, [ONE.id]), (TWO, list(TWO.names)), (ListedImage(id="b" * 64), ["b" * 64])]
)
async def test_an_image_goes_by_its_id_or_by_all_names_and_never_by_force(
    path: Path, image: ListedImage, named: list[str]
) -> None:
    with service(path, always(answer({"Deleted": [image.id], "ExitCode": 0}))) as requests:
        await ask(path, lambda runtime: runtime.remove_image(image))
    (request,) = requests
    method, _, url = request.partition(" ")
    assert (method, urlsplit(url).path) == ("DELETE", "/v4.0.0/libpod/images/remove")
    assert parse_qs(urlsplit(url).query) == {"images": named, "noprune": ["true"]}


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (["image used by 12ab: image is in use by a container: consider listing"], ErrorKind.WRONG_STATE),
        (["something else"], ErrorKind.INTERNAL),
        ([f"{ONE.id}: image not known"], None),
        ([f"{ONE.id}: image not known", "something else"], ErrorKind.INTERNAL),
        (None, None),
    ],
)
async def test_errors_of_a_removal_stand_in_an_answer_of_200(
    path: Path, errors: list[str] | None, kind: ErrorKind | None
) -> None:
    with service(path, always(answer({"Errors": errors, "ExitCode": 1}))):
        if kind is None:
            await ask(path, lambda runtime: runtime.remove_image(ONE))
        else:
            assert (await failure(path, lambda runtime: runtime.remove_image(ONE))).kind is kind


async def test_users_are_everybodys_containers_and_strangers_are_asked_what_they_mount(path: Path) -> None:
    listed = [
        {"Id": "1", "Names": ["ours"], "ImageID": "i1", "Labels": OURS},
        {"Id": "2", "Names": ["theirs"], "ImageID": "sha256:i2", "Labels": None},
        {"Id": "3", "Names": None, "ImageID": "i3"},
    ]
    mounts = {"Mounts": [{"Type": "image", "Source": "quay.io/a/b:1"}, {"Type": "bind", "Source": "/x"}]}
    gone = answer({"cause": "no such container", "message": "no such container", "response": 404}, 404)
    with service(path, always(answer(listed), answer(mounts), gone)) as requests:
        found = await ask(path, PodmanRuntime.list_image_users)
    assert found == (
        ImageUser(id="1", name="ours", images=("i1",)),
        ImageUser(id="2", name="theirs", images=("i2", "quay.io/a/b:1")),
        ImageUser(id="3", name="3", images=("i3",)),
    )
    assert requests[1:] == [f"GET /v4.0.0/libpod/containers/{id}/json" for id in "23"]


async def test_a_list_of_containers_is_tried_again_while_containers_go(path: Path) -> None:
    gone = answer({"cause": "container not known", "message": "determining: container not known", "response": 500}, 500)
    with service(path, always(*[gone] * (LIST_TRIES - 1), answer([]))) as requests:
        assert await ask(path, PodmanRuntime.list_image_users) == ()
        assert len(requests) == LIST_TRIES


async def test_a_stranger_that_cannot_be_asked_is_an_error(path: Path) -> None:
    broken = answer({"cause": "disk", "message": "disk", "response": 500}, 500)
    with service(path, always(answer([{"Id": "2", "ImageID": "i2"}]), broken)):
        assert (await failure(path, PodmanRuntime.list_image_users)).kind is ErrorKind.INTERNAL
