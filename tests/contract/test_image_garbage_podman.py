"""Podman's listing and removal of images: the facts that image garbage collection is built on."""

from __future__ import annotations

import os
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.target import PodmanTarget, unique
from tests.support.podman_service import IMAGE, PodmanService, podman
from workers.kubecontainer.image_service import ListedImage
from workers.kubecontainer.runtime import ErrorKind, Runtime, RuntimeCallError

pytestmark = pytest.mark.podman

LAYER_BYTES = 300_000
MakeImage = Callable[[], str]


@pytest.fixture
async def target(podman_service: PodmanService) -> AsyncIterator[PodmanTarget]:
    made = PodmanTarget(podman_service)
    yield made
    await made.clean()


@pytest.fixture
def make_image(target: PodmanTarget, tmp_path: Path) -> Iterator[MakeImage]:
    """Makes an image with a layer of its own: its name. All of them, and containers of them, are gone in the end."""
    made: list[str] = []

    def make() -> str:
        name, file = f"localhost/{unique('garbage', target)}:1", tmp_path / "layer"
        file.write_bytes(os.urandom(LAYER_BYTES))
        with tarfile.open(tmp_path / "root.tar", "w") as tar:
            tar.add(file, "layer")
        podman("import", "--quiet", str(tmp_path / "root.tar"), name)
        made.append(name)
        return name

    yield make
    for name in made:
        podman("rmi", "--force", "--ignore", name, f"{name}-too")


def image_id(name: str) -> str:
    return podman("image", "inspect", "--format", "{{.Id}}", name).strip()


async def listed(runtime: Runtime, name: str) -> ListedImage | None:
    return next((image for image in await runtime.list_images() if name in image.names), None)


async def found(runtime: Runtime, name: str) -> ListedImage:
    image = await listed(runtime, name)
    assert image is not None
    return image


async def test_an_image_is_listed_and_removed_and_frees_what_it_alone_has(
    target: PodmanTarget, make_image: MakeImage
) -> None:
    name, runtime = make_image(), target.runtime
    image = await found(runtime, name)
    assert image.id == image_id(name)
    assert image.size_bytes >= LAYER_BYTES
    assert not image.is_read_only
    usage = await runtime.image_usage("")
    assert usage is not None
    assert usage.exclusive is not None
    assert usage.capacity > usage.available > 0
    assert LAYER_BYTES <= usage.exclusive[image.id] <= 2 * LAYER_BYTES
    assert image_id(IMAGE) in usage.exclusive
    await runtime.remove_image(image)
    assert await listed(runtime, name) is None
    after = await runtime.image_usage("")
    assert after is not None
    assert after.exclusive is not None
    assert image.id not in after.exclusive
    await runtime.remove_image(image)  # gone is success


async def test_a_layer_shows_the_same_storage_as_podman_tells(target: PodmanTarget) -> None:
    container = podman("create", "--name", unique("layer", target), IMAGE, "true").strip()
    try:
        layer = (await target.runtime.inspect_container(container)).layer
        told = await target.runtime.image_usage("")
        seen = await target.stranger().image_usage(layer)
    finally:
        podman("rm", "--force", container)
    assert told is not None
    assert seen is not None
    assert (seen.capacity, image_id(IMAGE) in (seen.exclusive or {})) == (told.capacity, True)


@pytest.mark.parametrize("state", ["created", "exited", "running"])
async def test_an_image_of_a_strangers_container_is_in_use_and_is_not_removed(target: PodmanTarget, state: str) -> None:
    runtime, name = target.runtime, unique("stranger", target)
    podman("create", "--name", name, IMAGE, "sleep", "0" if state == "exited" else "60")
    try:
        if state != "created":
            podman("start", name)
        if state == "exited":
            podman("wait", name)
        image = await found(runtime, IMAGE)
        (user,) = (user for user in await runtime.list_image_users() if user.name == name)
        assert user.images == (image.id,)
        with pytest.raises(RuntimeCallError) as refused:
            await runtime.remove_image(image)
        assert refused.value.kind is ErrorKind.WRONG_STATE
        assert (await found(runtime, IMAGE)).id == image.id
    finally:
        podman("rm", "--force", "--time", "0", name)


async def test_an_image_that_is_mounted_into_a_strangers_container_is_in_use(
    target: PodmanTarget, make_image: MakeImage
) -> None:
    """Podman would remove it."""
    runtime, name, image = target.runtime, unique("mounting", target), make_image()
    podman("create", "--name", name, "--mount", f"type=image,source={image},destination=/m", IMAGE, "true")
    try:
        (user,) = (user for user in await runtime.list_image_users() if user.name == name)
        assert user.images == (image_id(IMAGE), image)
    finally:
        podman("rm", "--force", name)


async def test_an_image_that_has_got_another_name_since_it_was_listed_stays(
    target: PodmanTarget, make_image: MakeImage
) -> None:
    name, runtime = make_image(), target.runtime
    image = await found(runtime, name)
    podman("tag", name, f"{name}-too")
    with pytest.raises(RuntimeCallError):
        await runtime.remove_image(image)
    named_twice = await found(runtime, name)
    assert set(named_twice.names) == {name, f"{name}-too"}
    await runtime.remove_image(named_twice)
    assert await listed(runtime, name) is None
