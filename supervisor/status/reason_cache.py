"""Reasons why the last start of each container of a pod failed (pkg/kubelet/reason_cache.go). Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ipc.link.messages.pod_worker import SyncAction, SyncResult

Reasons = Mapping[str, SyncResult]
"""The last failed `StartContainer` result by the container's name; a success forgets it."""


def with_results(reasons: Reasons, results: Iterable[SyncResult]) -> Reasons:
    """The reasons after a sync with these results."""
    found = dict(reasons)
    for result in results:
        if result.action is not SyncAction.START_CONTAINER:
            continue
        if result.error:
            found[result.target] = result
        else:
            found.pop(result.target, None)
    return found


def of_containers(reasons: Reasons, names: Container[str]) -> Reasons:
    """The reasons of those containers alone: others are not part of the pod any more."""
    return {name: result for name, result in reasons.items() if name in names}
