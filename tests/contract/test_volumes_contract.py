"""Podman's named volumes, held against the fake and against Podman."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.target import Target, unique
from tests.support.podman_service import podman
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.podman import PodmanRuntime


@pytest.fixture
def name(target: Target) -> Iterator[str]:
    made = unique("volume", target)
    yield made
    if isinstance(target.runtime, PodmanRuntime):
        podman("volume", "rm", "--force", made)


async def test_a_volume_is_found_once_it_is_made(target: Target, name: str) -> None:
    assert await target.runtime.inspect_volume(name) is None
    made = await target.runtime.create_volume(name, {"whose": "ours"}, {})
    assert await target.runtime.inspect_volume(name) == made
    assert (made.name, made.driver, made.labels, made.options) == (name, "local", {"whose": "ours"}, {})
    assert made.mount_point.endswith(f"/{name}/_data")


async def test_a_volume_that_is_removed_is_gone(target: Target, name: str) -> None:
    await target.runtime.create_volume(name, {}, {})
    await target.runtime.remove_volume(name)
    assert await target.runtime.inspect_volume(name) is None
    await target.runtime.remove_volume(name)


async def test_a_name_is_given_once(target: Target, name: str) -> None:
    await target.runtime.create_volume(name, {}, {"o": "uid=0"})
    with pytest.raises(RuntimeCallError) as caught:
        await target.runtime.create_volume(name, {}, {})
    assert caught.value.kind is ErrorKind.NAME_IN_USE
