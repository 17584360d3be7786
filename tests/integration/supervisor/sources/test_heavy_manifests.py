"""Costly files of a watched directory: others do not wait for them, and they lose nothing meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from supervisor.sources import directory, heavy_files
from supervisor.sources.objects.apart import LIGHT_BYTES
from tests.integration.supervisor.sources.test_watch import manifests, replace, watched
from tests.support.manifests import errors, manifest, text

__all__ = ["manifests"]

PADDING: Final = "x" * LIGHT_BYTES
SLOW: Final = b'a: ["\\\'", ' + b"a," * 120_000 + b"]"
"""Only the slow parser knows the escape; it takes seconds."""


async def test_a_light_file_does_not_wait_for_slow_ones(manifests: Path) -> None:
    """The slow files follow, the smallest first; each is told of when it was read."""
    for number in range(3):
        (manifests / f"slow-{number}.yaml").write_bytes(SLOW + b"\n" * (3 - number))
    replace(manifests / "z.yaml", manifest("light"))
    async with watched(manifests) as seen:
        await seen.until_names("light")
        assert "slow-0.yaml" in seen.last.unread
        assert seen.last.complete
        replace(manifests / "y.yaml", manifest("later"))
        await seen.until_names("later", "light")
        assert "slow-0.yaml" in seen.last.held_files()
        await seen.until(lambda: bool(errors(seen.last)))
        assert errors(seen.last)[0].startswith("slow-2.yaml: document 1")


async def test_what_a_costly_file_has_stated_stays_while_it_is_read_anew(
    manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it at all here, so that what is told meanwhile is seen."""
    monkeypatch.setattr(heavy_files, "PATIENCE_S", 0.0)
    large = manifest("large", metadata={"annotations": {"a": PADDING}})
    replace(manifests / "a.yaml", large)
    async with watched(manifests) as seen:
        await seen.until_names("large")
        replace(manifests / "a.yaml", {**large, "metadata": {**large["metadata"], "labels": {"b": "c"}}})
        await seen.until(lambda: bool(seen.last.pods) and seen.last.pods[0].pod.metadata.labels == {"b": "c"})
    assert all(snapshot.pods or snapshot.held_files() == {"a.yaml"} for snapshot in seen.snapshots)
    assert any(snapshot.unread for snapshot in seen.snapshots)


async def test_costly_files_come_together_with_what_needs_them(manifests: Path) -> None:
    """As a ConfigMap and the pod that mounts it, unless it takes seconds."""
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": PADDING}}
    replace(manifests / "a.yaml", config_map)
    replace(manifests / "b.yaml", manifest("web"))
    async with watched(manifests) as seen:
        await seen.until_names("web")
        assert [(len(snapshot.pods), len(snapshot.objects)) for snapshot in seen.snapshots] == [(1, 1)]


async def test_many_light_files_come_in_parts(manifests: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "READING_BYTES", 2 * len(text(manifest("p0"))))
    for number in range(5):
        replace(manifests / f"{number}.yaml", manifest(f"p{number}"))
    async with watched(manifests) as seen:
        await seen.until_names(*(f"p{number}" for number in range(5)))
    assert [len(snapshot.pods) for snapshot in seen.snapshots] == [2, 4, 5]
    assert [len(snapshot.unread) for snapshot in seen.snapshots] == [3, 1, 0]
