"""Our requests beside a real kubelet's: what differs, and the reason that is known for it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.cluster_wire.shapes import Shape, Shapes


class Difference(NamedTuple):
    """One fact that is true of one side only."""

    kind: str
    """Kind of the request."""
    what: str
    """``never asked``, or a query parameter, content type or field of the body."""
    side: str
    """Side that makes it: ``kubelet`` or ``ours``."""


def differences(theirs: Shapes, ours: Shapes) -> Iterator[Difference]:
    """In the order of kinds."""
    for kind in sorted(theirs.keys() | ours.keys()):
        if kind not in ours:
            yield Difference(kind, "request", "kubelet")
        elif kind not in theirs:
            yield Difference(kind, "request", "ours")
        else:
            yield from _of_kind(kind, theirs[kind], ours[kind])


def _of_kind(kind: str, theirs: Shape, ours: Shape) -> Iterator[Difference]:
    for part in ("queries", "content_types", "body"):
        one, other = getattr(theirs, part), getattr(ours, part)
        yield from (Difference(kind, f"{part}: {what}", "kubelet") for what in sorted(one - other))
        yield from (Difference(kind, f"{part}: {what}", "ours") for what in sorted(other - one))
