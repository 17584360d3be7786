"""Patches of applied objects beside each other: a slow one keeps nobody waiting, and none is lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import SystemClock
from ipc.link.messages.api_server import Reply
from supervisor.config.settings import Settings
from supervisor.protocol.manifests import ManifestPod
from supervisor.sources.manager import MAX_PATCH_TRIES, SourceManager
from tests.support.manifests import manifest

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[SourceManager]:
    """Pods ``slow`` and ``quick`` are applied."""
    (tmp_path / "manifests").mkdir()
    made = SourceManager(
        Settings(static_pod_path=tmp_path / "manifests", state_dir=tmp_path / "state", memory_dir=tmp_path / "memory"),
        SystemClock(),
    )

    async def watch() -> None:
        async for _ in made.watch():
            pass

    watching = asyncio.create_task(watch())
    for name in ("slow", "quick"):
        reply = await made.apply(name, json.dumps(manifest(name)).encode())
        assert reply.code == 200, reply
    yield made
    watching.cancel()


async def label(manager: SourceManager, name: str, key: str) -> Reply:
    body = json.dumps({"metadata": {"labels": {key: "x"}}}).encode()
    return await manager.patch(("default", name), "Pod", "merge", body, dry_run=False, values=False)


class Held:
    """Patches of one pod are made, and wait before they are stored."""

    def __init__(self, manager: SourceManager, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made, self.goes_on = threading.Semaphore(0), threading.Semaphore(0)
        store = manager._applied
        changed = store.changed

        def hold(present: ManifestPod, *how: Any) -> object:
            value = changed(present, *how)
            if present.value.metadata.name == name:
                self.made.release()
                assert self.goes_on.acquire(timeout=30.0)
            return value

        monkeypatch.setattr(store, "changed", hold)

    async def until_made(self) -> None:
        await asyncio.to_thread(self.made.acquire)


async def test_a_patch_that_takes_long_keeps_no_other_waiting(
    manager: SourceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(manager, "slow", monkeypatch)
    slow = asyncio.create_task(label(manager, "slow", "a"))
    await held.until_made()
    assert (await label(manager, "quick", "b")).results == ("pod/quick patched",)
    assert not slow.done()
    held.goes_on.release()
    assert (await slow).results == ("pod/slow patched",)


async def test_a_patch_is_made_again_where_the_object_was_changed_meanwhile(
    manager: SourceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(manager, "slow", monkeypatch)
    first = asyncio.create_task(label(manager, "slow", "a"))
    await held.until_made()
    reply = await manager.apply("slow", json.dumps(manifest("slow", metadata={"annotations": {"c": "x"}})).encode())
    assert reply.code == 200, reply
    held.goes_on.release()
    await held.until_made()
    held.goes_on.release()
    assert (await first).results == ("pod/slow patched",)
    (found,) = (item for item in manager._applied.read().pods if item.pod.metadata.name == "slow")
    assert found.pod.metadata.labels["a"] == "x"
    assert found.pod.metadata.annotations["c"] == "x"


async def test_a_patch_of_what_never_rests_is_a_conflict(
    manager: SourceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(manager, "slow", monkeypatch)
    patch = asyncio.create_task(label(manager, "slow", "a"))
    for number in range(MAX_PATCH_TRIES):
        await held.until_made()
        changed = manifest("slow", metadata={"annotations": {"c": str(number)}})
        assert (await manager.apply("slow", json.dumps(changed).encode())).code == 200
        held.goes_on.release()
    reply = await patch
    assert (reply.code, reply.reason) == (409, "Conflict")
    assert reply.message.startswith('pods "slow" was changed while it was patched')
