"""Facts of the node that are kept for a while."""

from __future__ import annotations

from ipc.nodestatus.images import StoredImage
from ipc.podresources.node_resources import NodeResources
from ipc.shm.board import Board
from ipc.wire.boot import WorkerSettings
from tests.fakes.clock import HandClock
from tests.fakes.ownership import LABEL_KEY
from tests.integration.workers.cluster.node.conftest import AGENT, QUICK
from workers.cluster.node.observer import IMAGES_PERIOD_S, IMAGES_RETRY_S, NodeObserver
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError

IMAGE = StoredImage(id="a", size=7, repo_tags=("localhost/a:1",))


async def test_images_that_could_not_be_listed_are_asked_for_again_soon() -> None:
    clock, answers, asked = HandClock(), [False, True, False], list[float]()

    async def images() -> tuple[StoredImage, ...]:
        asked.append(clock.mono)
        if answers.pop(0):
            return (IMAGE,)
        raise RuntimeCallError(ErrorKind.UNAVAILABLE, "list images", "no socket yet")

    settings = WorkerSettings(
        instance="test",
        label_key=LABEL_KEY,
        node_name="n1",
        podman_socket="",
        pod_logs_dir="",
        node=NodeResources(),
    )
    observer = NodeObserver(settings, QUICK, Board.create(worker_slots=1, pod_rows=1), images, clock)
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
