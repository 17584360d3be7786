"""Counts of the agent's processes between two looks, while they come and go. Pure.

A worker's counters are of one incarnation, and go with it: a sum over those that are there falls when a worker leaves,
and the next incarnation begins at nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Incarnation = tuple[str, int]
"""A worker's name and its number there."""
Counts = Mapping[Incarnation, int]


def counts_of(workers: Iterable[Mapping[str, Any]], counter: str) -> dict[Incarnation, int]:
    """Counts of that counter, by who has counted; ``workers`` as the agent shows them."""
    counting = (worker for worker in workers if worker.get("counters"))
    return {(worker["name"], worker["incarnation"]): worker["counters"].get(counter, 0) for worker in counting}


def counted_by_any(counts: Counts) -> Counts:
    """Without those that have counted nothing: the API server, asked seldom, is another incarnation at each look."""
    return {who: count for who, count in counts.items() if count}


def counted_between(before: Counts, after: Counts) -> int:
    """By those that are there at the second look. What others have counted since the first one is not known, and left
    out."""
    return sum(count - before.get(who, 0) for who, count in after.items())
