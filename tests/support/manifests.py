"""Manifests and pods for the tests of the sources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from ipc.host.clock import Instant, monotonic
from ipc.k8s.api.decode import decode_pod
from ipc.k8s.api.defaults import default_pod
from ipc.k8s.api.v1.pod import Pod
from supervisor.protocol.manifests import FILE_SOURCE, SourceSnapshot
from supervisor.protocol.source_updates import PodUpdate, Update
from supervisor.sources.directory import ManifestReader, list_manifests
from supervisor.sources.objects.identity import Origin, identify

ORIGIN = Origin(instance="test", node_name="node-1", source=FILE_SOURCE)
NOW = Instant(mono=100.0, wall=1_767_225_600.0)  # 2026-01-01T00:00:00Z
DEADLINE_S = 30.0


def manifest(name: str = "web", *, image: str = "busybox", metadata: Any = None, **spec: Any) -> dict[str, Any]:
    """A Pod as parsed YAML; ``spec`` fields are added to it, ``metadata`` fields too."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def text(*manifests: dict[str, Any]) -> bytes:
    """One file with these documents; JSON is YAML."""
    return b"\n---\n".join(b"# a comment, so that this is read as YAML\n" + msgspec.json.encode(m) for m in manifests)


def read(directory: Path) -> SourceSnapshot:
    """The first reading of a manifest directory."""
    return ManifestReader(directory, ORIGIN).read(list_manifests(directory))


def errors(snapshot: SourceSnapshot) -> list[str]:
    return [str(error) for error in snapshot.errors]


def pod(name: str = "web", *, origin: Origin = ORIGIN, **fields: Any) -> Pod:
    """A pod as a source hands it on."""
    return identify(default_pod(decode_pod(manifest(name, **fields))), origin)


def pod_updates(updates: Iterable[Update]) -> list[PodUpdate]:
    """Updates of pods."""
    return [update for update in updates if isinstance(update, PodUpdate)]


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until the condition holds, at most DEADLINE_S."""
    deadline = monotonic() + DEADLINE_S
    while not await condition():
        assert monotonic() < deadline, "did not come true in time"
        await asyncio.sleep(0.01)
