"""Pods with volumes of ConfigMaps and Secrets, and the host that they are set up on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.k8s.api.v1.config_objects import ConfigMap, Secret
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.config_objects import ConfigObjects
from tests.fakes.clock import simulate
from tests.support.pods import UID, pod
from tests.support.sync import FakeHost
from workers.volumemanager.plugins.places import VolumeDirectory

SECRET = "s3cr3t-value"
APP = ConfigMap(data={"key": "1"})
KEY = Secret(data={"password": SECRET.encode()})
BOTH = ConfigObjects(config_maps={"app": APP}, secrets={"key": KEY})
OF_CONFIG_MAP = {"name": "v", "configMap": {"name": "app"}}
OF_SECRET = {"name": "s", "secret": {"secretName": "key", "defaultMode": 0o400}}
OF_POD = {"name": "p", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}
OF_ALL = {"name": "all", "projected": {"sources": [{"secret": {"name": "key"}}, {"configMap": {"name": "app"}}]}}

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
