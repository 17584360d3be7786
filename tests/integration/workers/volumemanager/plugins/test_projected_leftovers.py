"""Remains of a projected volume that cannot be removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

import pytest

from ipc.link.messages.pod_worker import WorkType
from tests.support.object_volumes import (
    BOTH,
    OF_CONFIG_MAP,
    OF_SECRET,
    Scenario,
    place,
    with_volumes,
)
from tests.support.sync import FakeHost

# --- the end -----------------------------------------------------------------------------------------------------


def test_what_stays_is_told_and_nothing_else_stays(
    on_host: Callable[[Scenario], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(host: FakeHost) -> None:
        made = with_volumes(OF_CONFIG_MAP, OF_SECRET)
        await host.settle(made, objects=BOTH)
        await host.sync(made, WorkType.TERMINATING, grace_period_s=1)
        host.events.clear()
        real = os.unlink

        def refuse(path: str, *, dir_fd: int | None = None) -> None:
            if stat.S_ISREG(os.lstat(path, dir_fd=dir_fd).st_mode) and path == "password":
                raise PermissionError(13, "Permission denied", path)
            real(path, dir_fd=dir_fd)

        with monkeypatch.context() as patch:
            patch.setattr("workers.fs.tree_removal.os.unlink", refuse)
            done = await host.sync(made, WorkType.TERMINATED, remove=True)
        assert done.error == "FailedUnMount"
        (event,) = [event for event in host.events if event.reason == "FailedUnMount"]
        assert event.message.startswith("UnmountVolume.TearDown failed: cannot remove 'volumes/kubernetes.io~secret/s/")
        assert "password': Permission denied; " in event.message, "and why it cannot be removed inside either"
        assert not place(host, OF_CONFIG_MAP).exists()
        assert not host.podman.containers, "containers wait for nothing"
        assert (await host.sync(made, WorkType.TERMINATED, remove=True)).error == ""
        assert list(host.memory_dir.iterdir()) == []

    on_host(scenario)
