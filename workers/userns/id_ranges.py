"""User and group ids that there are in a user namespace. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class IdRange(msgspec.Struct, frozen=True):
    """Ids from ``first`` on, so many."""

    first: int
    count: int

    def __contains__(self, id: int) -> bool:
        return self.first <= id < self.first + self.count

    def __str__(self) -> str:
        return f"{self.first}-{self.first + self.count - 1}" if self.count > 1 else f"{self.first}"


class IdRanges(msgspec.Struct, frozen=True, kw_only=True):
    """Ranges of both kinds, each in order and without gaps that could be left out."""

    users: tuple[IdRange, ...]
    groups: tuple[IdRange, ...]


def merged(ranges: Iterable[IdRange]) -> tuple[IdRange, ...]:
    """The same ids in as few ranges as there can be."""
    found: list[IdRange] = []
    for next_one in sorted(ranges, key=lambda one: one.first):
        if found and next_one.first <= found[-1].first + found[-1].count:
            end = max(found[-1].first + found[-1].count, next_one.first + next_one.count)
            found[-1] = IdRange(found[-1].first, end - found[-1].first)
        else:
            found.append(next_one)
    return tuple(found)


def has_id(ranges: Iterable[IdRange], id: int) -> bool:
    """Whether one of them has it."""
    return any(id in one for one in ranges)


def shown(ranges: Iterable[IdRange]) -> str:
    """Ranges for people: ``0-65536``."""
    return ", ".join(map(str, ranges)) or "none"
