"""What `rootlet delete` answers and hands on, by who states the pod; and a start without a usable checkpoint."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ipc.clock import SystemClock
from supervisor.desired import CHECKPOINT_FILE, Change, Desired
from supervisor.dialogue import KillPod
from supervisor.settings import Settings
from supervisor.sources.types import PodOperation
from tests.unit.supervisor.manifests import DEADLINE_S, manifest, text


class Sources:
    """Real sources below a directory, and the changes that they give."""

    def __init__(self, directory: Path) -> None:
        self.manifests = directory / "manifests"
        self.manifests.mkdir()
        self.state = directory / "state"
        settings = Settings(instance_name="test", static_pod_path=self.manifests, state_dir=self.state)
        self.desired = Desired(settings, SystemClock())
        self.changes: AsyncIterator[Change] = self.desired.watch()

    async def next_change(self) -> Change:
        async with asyncio.timeout(DEADLINE_S):
            return await anext(self.changes)

    async def delete(self, name: str, grace_period_s: int | None = None, *, going_down: bool = False) -> int:
        reply = await self.desired.delete("default", name, grace_period_s, going_down=going_down)
        return reply.code


@pytest.fixture
async def sources(tmp_path: Path) -> AsyncIterator[Sources]:
    """Both were read: ``of-a-file`` is in the directory, ``applied`` was applied."""
    made = Sources(tmp_path)
    (made.manifests / "a.yaml").write_bytes(text(manifest("of-a-file")))
    async with contextlib.aclosing(made.changes):  # type: ignore[type-var]
        await made.next_change()
        await made.next_change()
        assert made.desired.all_ready
        assert (await made.desired.apply("-", text(manifest("applied")))).code == 200
        await made.next_change()
        yield made


async def test_what_was_applied_goes_and_a_grace_period_goes_with_it(sources: Sources) -> None:
    assert await sources.delete("applied", 0) == 200
    change = await sources.next_change()
    assert [(update.op, [pod.metadata.name for pod in update.pods]) for update in change.updates] == [
        (PodOperation.REMOVE, ["applied"])
    ]
    assert change.kill == KillPod("default", "applied", 1)


async def test_a_manifests_pod_stays_even_when_an_earlier_one_of_its_name_is_going_down(sources: Sources) -> None:
    assert await sources.delete("of-a-file", 1) == 403
    assert await sources.delete("of-a-file", 1, going_down=True) == 403


async def test_a_pod_that_nobody_states_any_more_can_only_go_sooner(sources: Sources) -> None:
    assert await sources.delete("forgotten", 1) == 404
    assert await sources.delete("forgotten", 5, going_down=True) == 200
    assert await sources.next_change() == Change(kill=KillPod("default", "forgotten", 5))


async def test_a_damaged_checkpoint_is_put_aside_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sources = Sources(tmp_path)
    sources.state.mkdir()
    (sources.state / CHECKPOINT_FILE).write_text("{")
    assert sources.desired.restore() == ()
    assert "moved to desired.json.refused" in caplog.text


async def test_pods_that_were_taken_down_on_request_are_not_restored(sources: Sources) -> None:
    checkpoint = sources.state / CHECKPOINT_FILE
    assert checkpoint.exists()
    sources.desired.forget()
    assert not checkpoint.exists()
    sources.desired.forget()
