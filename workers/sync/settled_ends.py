"""Ends of containers after which nothing of them was left: nobody has to look for their processes again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ipc.kubecontainer.pod_status import RuntimeContainerStatus

MAX_PODS: Final = 1024
"""Pods of which ends are remembered. The oldest is forgotten first: at the worst all processes are looked at again."""

_End = tuple[str, float]
"""A container's id, and when it has ended: somebody may start it again."""


class SettledEnds:
    """What one worker knows of that. It dies with the worker."""

    def __init__(self) -> None:
        self._settled: dict[str, frozenset[_End]] = {}

    def has(self, uid: str, ended: Collection[RuntimeContainerStatus]) -> bool:
        """Whether all these ends of a pod's containers are settled; one that nobody has seen yet is not."""
        return all(c.finished_at for c in ended) and _ends(ended) <= self._settled.get(uid, frozenset())

    def add(self, uid: str, ended: Collection[RuntimeContainerStatus]) -> None:
        """All that are known of that pod: what is not among them is forgotten."""
        self._settled.pop(uid, None)
        if len(self._settled) >= MAX_PODS:
            del self._settled[next(iter(self._settled))]
        self._settled[uid] = _ends(ended)


def _ends(ended: Collection[RuntimeContainerStatus]) -> frozenset[_End]:
    return frozenset((container.id, container.finished_at) for container in ended)
