"""Pods fill the image store by what they have pulled: images that nobody uses go, and a pod only when all are in use.

Podman's storage is a small part of a file system that is memory, the registry the test's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.agent import Agent
from tests.e2e.conftest import NewAgent
from tests.e2e.innocents import Crowd
from tests.e2e.manifests import STAY, container, pod
from tests.e2e.short_node import (
    EVICTED_S,
    MIB,
    TEST_S,
    assert_told,
    evicted,
    has_condition,
    imagefs_agent,
    until_evicted,
    until_relieved,
)
from tests.support import registry
from tests.support.podman_service import image_exists
from tests.support.registry import Registry

pytestmark = [pytest.mark.e2e, pytest.mark.podman, pytest.mark.slow, pytest.mark.timeout(TEST_S)]

TINY: Final = 16 * MIB
SMALL: Final = 32 * MIB
LARGE: Final = 64 * MIB
"""Three small images and a large one are more than the node has (`imagefs_agent`), the large one alone is not, nor are
the small ones. Nor is it with three tiny ones: a pull that is more than the node has makes it short before its pod can
be to blame, and another one goes."""
WRITTEN: Final = 48 * MIB
"""With three tiny images and the large one it is."""
MORE: Final = 32 * MIB
"""The node wants so much more than its threshold once it was short: with the image of the pod that went it has less."""


@pytest.fixture
def shop(store_in_memory: Path, tmp_path: Path) -> Iterator[Registry]:
    if reason := registry.why_not():
        pytest.skip(reason)
    with registry.registry(tmp_path) as made:
        yield made


@pytest.fixture
def filling(store_in_memory: Path, shop: Registry, in_memory: Path, tmp_path: Path, new_agent: NewAgent) -> Agent:
    environment = registry.registries_conf(tmp_path, shop.address)

    def make(**changes: object) -> Agent:
        agent = new_agent(**changes)
        agent.environment |= environment
        return agent

    agent, _ = imagefs_agent(
        make,
        store_in_memory,
        in_memory,
        imageMinimumGCAge="1s",
        evictionMinimumReclaim={"imagefs.available": str(MORE)},
    )
    return agent


def run_from(agent: Agent, shop: Registry, name: str, size: int, script: str = STAY) -> None:
    shop.push(name, "1", layer_bytes=size)
    agent.run(pod(name, container(script=script, image=image_of(shop, name), imagePullPolicy="IfNotPresent")))


def image_of(shop: Registry, name: str) -> str:
    return f"{shop.address}/{name}:1"


def stored(shop: Registry, *names: str) -> set[str]:
    """Names of those images that the storage has."""
    return {name for name in names if image_exists(image_of(shop, name))}


def test_images_of_pods_that_are_gone_go_and_no_pod_does(filling: Agent, shop: Registry) -> None:
    crowd, gone = Crowd(filling), ("gone-1", "gone-2", "gone-3")
    for name in gone:
        run_from(filling, shop, name, SMALL)
        filling.remove(name)
        filling.until_gone([name])
    assert stored(shop, *gone) == set(gone), "there is room for them"
    run_from(filling, shop, "stays", LARGE)
    filling.until(lambda: not stored(shop, *gone), "the unused images are gone", EVICTED_S)
    assert "Attempting to reclaim ephemeral-storage" in filling.messages("e2e", "EvictionThresholdMet")
    until_relieved(filling, "DiskPressure")
    assert stored(shop, "stays") == {"stays"}
    filling.until_ready(["stays"])
    crowd.assert_undisturbed()
    assert evicted(filling) == []


def test_of_pods_whose_images_are_all_in_use_the_one_with_the_largest_layer_goes(
    filling: Agent, shop: Registry
) -> None:
    """Images are nobody's use: the pods are ranked by what they have written. That of the pod that went is unused."""
    crowd, tiny = Crowd(filling), ("tiny-1", "tiny-2", "tiny-3")
    for name in tiny:
        run_from(filling, shop, name, TINY)
    writes = f"busybox head -c {WRITTEN} /dev/zero > /written; {STAY}"
    run_from(filling, shop, "large", LARGE, writes)
    status = until_evicted(filling, "large")
    assert_told(filling, "large", "ephemeral-storage")
    filling.until(lambda: has_condition(filling, "DiskPressure"), "the node says so")
    assert "Container main was using" in status["message"]
    assert "request is 0, has larger consumption of ephemeral-storage" in status["message"]
    filling.until(lambda: not stored(shop, "large"), "its image is gone", EVICTED_S)
    until_relieved(filling, "DiskPressure")
    filling.until_ready(tiny)
    assert stored(shop, *tiny) == set(tiny)
    crowd.assert_undisturbed()
    assert evicted(filling) == ["large"]
