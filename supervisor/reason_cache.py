"""Why the last start of a container failed (pkg/kubelet/reason_cache.go)."""

from __future__ import annotations

from collections.abc import Iterable

from ipc.messages import SyncAction, SyncResult


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

    def get(self, uid: str, container: str) -> SyncResult | None:
        return self._reasons.get(uid, {}).get(container)

    def of_pod(self, uid: str) -> dict[str, SyncResult]:
        return self._reasons.get(uid, {})

    def remove(self, uid: str) -> None:
        self._reasons.pop(uid, None)
