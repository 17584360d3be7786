"""What is known of containers from their last inspect, by id and by the pod that they are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from workers import labels
from workers.runtime import InspectedContainer


class InspectedContainers(Mapping[str, InspectedContainer]):
    """By id. To find a pod's own takes as long as it has containers, however many there are of others."""

    def __init__(self) -> None:
        self._by_id: dict[str, InspectedContainer] = {}
        self._ids: dict[str, set[str]] = {}
        """By pod uid."""

    def __getitem__(self, id: str) -> InspectedContainer:
        return self._by_id[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def __len__(self) -> int:
        return len(self._by_id)

    def of_pod(self, uid: str) -> Set[str]:
        """Ids of those that carry that uid."""
        return self._ids.get(uid, frozenset())

    def put(self, container: InspectedContainer) -> None:
        """A container's labels never change."""
        self._by_id[container.id] = container
        self._ids.setdefault(_uid(container), set()).add(container.id)

    def forget(self, id: str) -> None:
        container = self._by_id.pop(id, None)
        if container is None:
            return
        ids = self._ids[_uid(container)]
        ids.discard(id)
        if not ids:
            del self._ids[_uid(container)]


def _uid(container: InspectedContainer) -> str:
    return container.labels.get(labels.POD_UID, "")
