"""Remains of a projected volume that cannot be removed."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.api.v1.config_objects import ConfigMap, Secret
from ipc.api.v1.pod import Pod
from ipc.api.v1.volume import Volume
from ipc.kubecontainer.config_objects import ConfigObjects
from ipc.messages.pod_worker import WorkType
from tests.fakes.clock import simulate
from tests.harness.pods import UID, pod
from tests.harness.sync import FakeHost
from workers.volumemanager.plugins.places import VolumeDirectory

SECRET = "s3cr3t-value"
APP = ConfigMap(data={"key": "1"})
KEY = Secret(data={"password": SECRET.encode()})
BOTH = ConfigObjects(config_maps={"app": APP}, secrets={"key": KEY})
OF_CONFIG_MAP = {"name": "v", "configMap": {"name": "app"}}
OF_SECRET = {"name": "s", "secret": {"secretName": "key", "defaultMode": 0o400}}

Scenario = Callable[[FakeHost], Awaitable[None]]


def with_volumes(*volumes: dict[str, Any], **labels: str) -> Pod:
    made = pod(volumes=tuple(msgspec.convert(volume, Volume) for volume in volumes))
    metadata = msgspec.structs.replace(made.metadata, labels=labels)
    return msgspec.structs.replace(made, metadata=metadata)


@pytest.fixture
def on_host(tmp_path: Path, memory: Path) -> Callable[[Scenario], None]:
    """Runs a scenario on a host whose ``memoryDir`` is in memory."""

    def run(scenario: Scenario) -> None:
        async def main() -> None:
            host = FakeHost(tmp_path / "logs")
            host.memory_dir = memory / "pods"
            host.next_worker()
            await scenario(host)

        simulate(main)

    return run


def place(host: FakeHost, volume: dict[str, Any]) -> Path:
    """Where that volume lies."""
    plugins = {"configMap": "configmap", "secret": "secret", "downwardAPI": "downward-api", "projected": "projected"}
    source = next(key for key in volume if key != "name")
    root = host.pods_dir if source == "configMap" else host.memory_dir
    return VolumeDirectory(str(root), UID, plugins[source], volume["name"]).path


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
