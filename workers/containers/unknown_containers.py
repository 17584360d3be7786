"""Containers and pods that carry the agent's labels and were not made by it: left alone, and reported once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.runtime import ListedContainer, ListedPod

MAX_NAMED: Final = 10
"""Most that are named in one report."""
MAX_NAME_CHARS: Final = 64

T = TypeVar("T", ListedContainer, ListedPod)


class UnknownContainers:
    """Finds unknown containers and pods in full lists. Results are kept by id: labels and dates never change, names
    may."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._known: dict[str, tuple[str, bool]] = {}
        """By id: the name, and whether the agent has made it. Of the last full list."""
        self._unreported: list[str] = []
        self.is_list_due = False
        """Somebody else's container was inspected, and there was no full list since: only a list reports it."""

    def inspected(self, id: str) -> None:
        """The agent has not made that container."""
        self.is_list_due |= id not in self

    def __contains__(self, id: str) -> bool:
        """Whether the last full list showed that id as unknown."""
        _, is_ours = self._known.get(id, ("", True))
        return not is_ours

    def without_unknown(
        self, containers: Iterable[ListedContainer], pods: Iterable[ListedPod]
    ) -> tuple[tuple[ListedContainer, ...], tuple[ListedPod, ...]]:
        """Containers and pods of a full list that the agent has made."""
        before, self._known, self.is_list_due = self._known, {}, False
        return (
            tuple(found for found in containers if self._is_known(found, before, self._ownership.owns)),
            tuple(found for found in pods if self._is_known(found, before, self._ownership.owns_pod)),
        )

    def _is_known(self, found: T, before: Mapping[str, tuple[str, bool]], owns: Callable[[T], bool]) -> bool:
        """Whether the agent has made it."""
        name, is_ours = before.get(found.id, ("", False))
        if name != found.name:
            is_ours = owns(found)
            if not is_ours:
                self._unreported.append(f"{found.name[:MAX_NAME_CHARS]} ({found.id[:12]})")
        self._known[found.id] = found.name, is_ours
        return is_ours

    def take_report(self) -> str:
        """Message about those that were found since the last report; empty when there are none."""
        found, self._unreported = self._unreported, []
        if not found:
            return ""
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        return (
            f"Left alone: {', '.join(found[:MAX_NAMED])}{more}, with labels of this agent's that it has not written; "
            "an image or another command has brought them"
        )
