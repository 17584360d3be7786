"""Which pod worker owns which pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def least_loaded(slots: Sequence[int], pods_per_slot: Mapping[int, int]) -> int:
    """The slot with the fewest pods, the first of several.

    A pod keeps its slot for as long as this agent supervises it. A hash of the UID would need no memory but leaves one
    of two workers with 35 of 60 pods now and then, and the slower shard is what a start takes.
    """
    return min(slots, key=lambda slot: pods_per_slot.get(slot, 0))
