from __future__ import annotations

import asyncio

import pytest

from ipc.k8s.podobjects.registry_login import Pull
from ipc.link.messages.base import PullEnded, PullProgress
from ipc.link.messages.pod_worker import AbandonPull, PullImage
from tests.fakes.clock import simulate
from workers.images.pull_requests import PullRequests

IMAGE = "quay.io/a/b:1"


class Kit:
    def __init__(self) -> None:
        self.sent: list[str] = []
        self.requests = PullRequests(self._send)
        self.heard: list[str] = []

    async def _send(self, request: PullImage | AbandonPull) -> None:
        self.sent.append(f"{type(request).__name__} {request.uid}")

    def pull(self, uid: str, reference: str = IMAGE) -> asyncio.Task[PullEnded]:
        return asyncio.create_task(
            self.requests.pull(uid, Pull(reference=reference), lambda words: self.heard.append(f"{uid} {words}"))
        )


def test_everybody_who_waits_hears_and_is_answered() -> None:
    async def main() -> None:
        kit = Kit()
        waiting = [kit.pull("u1"), kit.pull("u2"), kit.pull("u3", "other")]
        await asyncio.sleep(1)
        kit.requests.progressed(PullProgress(reference=IMAGE, words="copying"))
        kit.requests.ended(PullEnded(reference=IMAGE, image_id="i"))
        await asyncio.sleep(1)
        assert [task.done() for task in waiting] == [True, True, False]
        assert waiting[0].result().image_id == "i"
        assert kit.heard == ["u1 copying", "u2 copying"]
        assert kit.sent == ["PullImage u1", "PullImage u2", "PullImage u3", "AbandonPull u1", "AbandonPull u2"]
        waiting[2].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[2]
        assert kit.sent[-1] == "AbandonPull u3"

    simulate(main)


def test_two_containers_of_a_pod_are_one_waiter() -> None:
    async def main() -> None:
        kit = Kit()
        one, two = kit.pull("u1"), kit.pull("u1")
        await asyncio.sleep(1)
        one.cancel()
        await asyncio.sleep(1)
        assert "AbandonPull u1" not in kit.sent
        kit.requests.ended(PullEnded(reference=IMAGE))
        await two
        assert kit.sent[-1] == "AbandonPull u1"

    simulate(main)


def test_news_for_nobody_is_dropped() -> None:
    async def main() -> None:
        kit = Kit()
        kit.requests.progressed(PullProgress(reference=IMAGE, words="copying"))
        kit.requests.ended(PullEnded(reference=IMAGE))
        assert kit.sent == []

    simulate(main)
