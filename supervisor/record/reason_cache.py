"""Reasons why the last start of each container failed (pkg/kubelet/reason_cache.go)."""

from __future__ import annotations

from collections.abc import Container, Iterable

from ipc.messages.pod_worker import SyncAction, SyncResult


class ReasonCache:
    """The last failed `StartContainer` result per pod and container; a success forgets it."""

    def __init__(self) -> None:
        self._reasons: dict[str, dict[str, SyncResult]] = {}

    def update(self, uid: str, results: Iterable[SyncResult]) -> None:
        for result in results:
            if result.action is not SyncAction.START_CONTAINER:
                continue
            reasons = self._reasons.setdefault(uid, {})
            if result.error:
                reasons[result.target] = result
            else:
                reasons.pop(result.target, None)

    def retain(self, uid: str, containers: Container[str]) -> None:
        """Forget those of containers that are not part of the pod any more."""
        if uid in self._reasons:
            self._reasons[uid] = {name: result for name, result in self._reasons[uid].items() if name in containers}

    def of_pod(self, uid: str) -> dict[str, SyncResult]:
        return self._reasons.get(uid, {})

    def remove(self, uid: str) -> None:
        self._reasons.pop(uid, None)
