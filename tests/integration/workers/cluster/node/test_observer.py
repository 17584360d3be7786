"""Facts of the node that are kept for a while."""

from __future__ import annotations

import asyncio

import msgspec

from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.shm.board import Board
from ipc.link.wire.boot import WorkerSettings
from tests.fakes.clock import HandClock
from tests.fakes.ownership import LABEL_KEY
from tests.integration.workers.cluster.node.conftest import AGENT, QUICK
from workers.cluster.node.observer import IMAGES_PERIOD_S, IMAGES_RETRY_S, Images, NodeObserver
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.nodestatus.images import StoredImage

SILENT = msgspec.structs.replace(AGENT, runtime_healthy=False, runtime_message="no answer")
IMAGE = StoredImage(id="a", size=7, repo_tags=("localhost/a:1",))


def _observer(images: Images, clock: HandClock) -> NodeObserver:
    settings = WorkerSettings(
        instance="test",
        label_key=LABEL_KEY,
        node_name="n1",
        podman_socket="",
        pod_logs_dir="",
        node=NodeResources(),
    )
    return NodeObserver(settings, QUICK, Board.create(worker_slots=1, pod_rows=1), images, clock)


async def test_images_that_could_not_be_listed_are_asked_for_again_soon() -> None:
    clock, answers, asked = HandClock(), [False, True, False], list[float]()

    async def images() -> tuple[StoredImage, ...]:
        asked.append(clock.mono)
        if answers.pop(0):
            return (IMAGE,)
        raise RuntimeCallError(ErrorKind.UNAVAILABLE, "list images", "no socket yet")

    observer = _observer(images, clock)
    observer.take(AGENT)

    async def seen(after_s: float) -> tuple[StoredImage, ...]:
        clock.mono = 1000.0 + after_s
        return tuple((await observer.facts()).images)

    assert await seen(0) == ()
    assert await seen(IMAGES_RETRY_S - 1) == ()
    assert await seen(IMAGES_RETRY_S) == (IMAGE,)
    assert await seen(IMAGES_PERIOD_S) == (IMAGE,)
    assert await seen(IMAGES_RETRY_S + IMAGES_PERIOD_S) == (IMAGE,), "the last ones, while there is no answer"
    assert asked == [1000.0, 1000.0 + IMAGES_RETRY_S, 1000.0 + IMAGES_RETRY_S + IMAGES_PERIOD_S]


async def test_images_are_asked_for_again_as_soon_as_podman_answers() -> None:
    clock, asked = HandClock(), list[float]()

    async def images() -> tuple[StoredImage, ...]:
        asked.append(clock.mono)
        if len(asked) == 1:
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, "list images", "no socket yet")
        return (IMAGE,)

    observer = _observer(images, clock)
    observer.take(SILENT)
    assert tuple((await observer.facts()).images) == ()
    observer.take(AGENT)
    assert tuple((await observer.facts()).images) == (IMAGE,)


async def test_the_wait_for_podman_ends_with_its_answer_or_with_its_time() -> None:
    async def images() -> tuple[StoredImage, ...]:
        return ()

    observer = _observer(images, HandClock())
    observer.take(SILENT)
    await observer.wait_for_runtime(0.001)
    waiting = asyncio.create_task(observer.wait_for_runtime(3600))
    await asyncio.sleep(0)
    assert not waiting.done()
    observer.take(AGENT)
    await waiting
