"""What says that it is ours and is not: left alone, and told about once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.runtime import ListedContainer, ListedPod

MAX_NAMED: Final = 10
"""Of many that are found at once so many are named."""
MAX_NAME_CHARS: Final = 64

T = TypeVar("T", ListedContainer, ListedPod)


class Strangers:
    """Sorts them out of full lists. Remembers by id what was found, for labels and dates never change, names may."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._known: dict[str, tuple[str, bool]] = {}
        """By id: the name, and whether it is ours. Of the last full list."""
        self._news: list[str] = []

    def __contains__(self, id: str) -> bool:
        """Whether the last full list showed such a stranger."""
        _, is_ours = self._known.get(id, ("", True))
        return not is_ours

    def sorted_out(
        self, containers: Iterable[ListedContainer], pods: Iterable[ListedPod]
    ) -> tuple[tuple[ListedContainer, ...], tuple[ListedPod, ...]]:
        """Those of a full list that are ours."""
        before, self._known = self._known, {}
        return (
            tuple(found for found in containers if self._meet(found, before, self._ownership.owns)),
            tuple(found for found in pods if self._meet(found, before, self._ownership.owns_pod)),
        )

    def _meet(self, found: T, before: Mapping[str, tuple[str, bool]], owns: Callable[[T], bool]) -> bool:
        """Whether it is ours."""
        name, is_ours = before.get(found.id, ("", False))
        if name != found.name:
            is_ours = owns(found)
            if not is_ours:
                self._news.append(f"{found.name[:MAX_NAME_CHARS]} ({found.id[:12]})")
        self._known[found.id] = found.name, is_ours
        return is_ours

    def take_news(self) -> str:
        """A sentence about those that came since it was last asked for; empty when there are none."""
        news, self._news = self._news, []
        if not news:
            return ""
        more = f" and {len(news) - MAX_NAMED} more" if len(news) > MAX_NAMED else ""
        return (
            f"Left alone: {', '.join(news[:MAX_NAMED])}{more}, with labels of this agent's that it has not written; "
            "an image or another command has brought them"
        )
