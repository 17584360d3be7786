"""Arbitration of names between documents: one rule for pods and for the objects beside them. Pure.

A name can be claimed by two files and by two sources. The first keeps it, also over a restart; the others are reported
and take over at the merge in which it is given up.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

import msgspec

from supervisor.protocol.manifests import SourceSnapshot


class Claim(Protocol):
    """A document's claim to a name."""

    @property
    def source(self) -> str: ...

    @property
    def file(self) -> str: ...

    @property
    def document(self) -> int: ...

    @property
    def key(self) -> Hashable:
        """Key that a document claims; the document may move within its file and keeps it."""

    @property
    def claims(self) -> tuple[Hashable, ...]:
        """All that only one at a time may have."""


C = TypeVar("C", bound=Claim)


class Conflict(msgspec.Struct, Generic[C], frozen=True):
    """A claim that waits, and the one that holds the name."""

    item: C
    holder: C


def arbitrate(
    snapshot: SourceSnapshot, stated: Collection[C], old: Collection[C], others: Iterable[C]
) -> tuple[tuple[C, ...], tuple[Conflict[C], ...]]:
    """The claims of one source that hold, and those that wait.

    First the accepted ones (``old``) that the snapshot cannot speak for, then the documents that held a name before (by
    file: a document may move within it), then the others as they come. ``others`` hold names for other sources.
    """
    kept = _kept(snapshot, stated, old)
    held_before = {(item.file, item.key) for item in old}
    holders = {claim: item for item in (*others, *kept) for claim in item.claims}
    claims = list(kept)
    conflicts = []
    for item in sorted(stated, key=lambda item: (item.file, item.key) not in held_before):
        holder = next((holders[claim] for claim in item.claims if claim in holders), None)
        if holder is not None:
            conflicts.append(Conflict(item, holder))
            continue
        holders |= dict.fromkeys(item.claims, item)
        claims.append(item)
    return tuple(claims), tuple(conflicts)


def _kept(snapshot: SourceSnapshot, stated: Iterable[C], old: Iterable[C]) -> tuple[C, ...]:
    """Claims that were accepted and are not stated now, by a file or listing of which not everything is known."""
    stated_now = {(item.file, item.key) for item in stated}
    held = snapshot.held_files()
    return tuple(
        item for item in old if (not snapshot.complete or item.file in held) and (item.file, item.key) not in stated_now
    )


def place(item: Claim) -> str:
    """File and document of a claim, for people."""
    document = f" document {item.document}" if item.document > 1 else ""
    return f"{item.source}: {item.file}{document}"
