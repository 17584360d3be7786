"""Giving a volume to a group, where that takes long."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ipc.link.messages.pod_worker import SyncPod, WorkType
from tests.support.pods import UID
from tests.support.sync import FakeHost
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun
from workers.userns.unshare import Unshare
from workers.volumemanager.plugins import ownership
from workers.volumemanager.plugins.ownership import give_volume_to_group

SLOW = """#!/bin/sh
sleep 1
shift
exec "$@"
"""
WARNED = "Warning VolumePermissionChangeInProgress Setting volume ownership for {} is taking longer than expected, "


@contextmanager
def a_run(tmp_path: Path, cancel: asyncio.Event) -> Iterator[tuple[FakeHost, SyncRun]]:
    podman = tmp_path / "podman"
    podman.write_text(SLOW)
    podman.chmod(stat.S_IRWXU)
    host = FakeHost(tmp_path / "logs")
    host.configure("volumes", unshare=Unshare(podman=str(podman)))
    request = SyncPod(uid=UID, generation=1, incarnation=1, kind=WorkType.SYNC, pod=None, row=-1, min_observed_at=0.0)
    with closing(host.context.services.files):
        yield host, host.new_run(request, cancel)


def test_it_is_told_again_and_again_and_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "FIRST_PROGRESS_S", 0.1)
    monkeypatch.setattr(ownership, "PROGRESS_PERIOD_S", 0.3)
    volume = tmp_path / "v"
    volume.mkdir(0o700)

    async def scenario() -> None:
        with a_run(tmp_path, asyncio.Event()) as (host, run):
            await give_volume_to_group(run, host.context.volumes.unshare, "v", volume, os.getgid())
        told = [f"{event.type} {event.reason} {event.message}" for event in host.events]
        assert 2 <= len(told) <= 10
        assert all(words.startswith(WARNED.format(volume)) for words in told)

    asyncio.run(scenario())
    assert stat.S_IMODE(volume.stat().st_mode) == 0o2770


def test_what_is_quick_is_not_told_and_what_is_cancelled_not_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        cancel = asyncio.Event()
        with a_run(tmp_path, cancel) as (host, run):
            await give_volume_to_group(run, host.context.volumes.unshare, "v", tmp_path, os.getgid())
            assert host.events == []
            asyncio.get_running_loop().call_later(0.1, cancel.set)
            with pytest.raises(SyncEnded, match="cancelled"):
                await asyncio.wait_for(
                    give_volume_to_group(run, host.context.volumes.unshare, "v", tmp_path, os.getgid()), 0.8
                )

    asyncio.run(scenario())
