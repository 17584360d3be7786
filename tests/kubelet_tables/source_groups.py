"""Adapter of the group about merging what a source states with what was accepted of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ipc.host.clock import Instant
from supervisor.protocol.manifests import ManifestPod, SourceSnapshot
from supervisor.protocol.source_updates import PodOperation, PodUpdate
from supervisor.sources.objects.merge import PodConfig
from tests.kubelet_tables.later import Result
from tests.kubelet_tables.translate import Json, pod

_NOW: Final = Instant(mono=0.0, wall=1_800_000_000.0)
_OPERATIONS: Final = {
    "adds": PodOperation.ADD,
    "updates": PodOperation.UPDATE,
    "deletes": PodOperation.DELETE,
    "removes": PodOperation.REMOVE,
    "reconciles": PodOperation.RECONCILE,
}


def _config_merge(case: Json) -> Result:
    source = case["config_source"]
    config = PodConfig({source, *case["stored"]})
    for stored, pods in case["stored"].items():
        config.merge(_snapshot(stored, pods.values()), _NOW)
    updates = config.merge(_snapshot(source, case["pods"]), _NOW)
    got = {name: _uids(updates, operation) for name, operation in _OPERATIONS.items()}
    expected = {name: sorted(case["expected"][name]) for name in _OPERATIONS}
    stored_now = sorted(item.pod.metadata.uid for item in config.desired() if item.source == source)
    return (expected, sorted(case["expected_stored"])), (got, stored_now)


def _snapshot(source: str, pods: Iterable[Json]) -> SourceSnapshot:
    stated = (ManifestPod(pod=pod(found), file=f"{number}.yaml") for number, found in enumerate(pods))
    return SourceSnapshot(source=source, pods=tuple(stated), complete=True)


def _uids(updates: Iterable[Any], operation: PodOperation) -> list[str]:
    about = [update for update in updates if isinstance(update, PodUpdate) and update.op is operation]
    return sorted(found.metadata.uid for update in about for found in update.pods)


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {"config_merge": _config_merge}
