"""Counted references: a watch for the first pod that refers to an object, none after the last."""

from __future__ import annotations

from typing import Final

from ipc.k8s.podobjects.config_objects import ObjectKey, ObjectKind
from workers.cluster.objects.objects import Difference, References

A: Final = ObjectKey(ObjectKind.CONFIG_MAP, "default", "a")
B: Final = ObjectKey(ObjectKind.SECRET, "default", "b")
NOTHING: Final = Difference(frozenset(), frozenset())


def test_first_and_last() -> None:
    references = References()
    assert references.state("one", {A}) == Difference(frozenset({A}), frozenset())
    assert references.state("two", {A, B}) == Difference(frozenset({B}), frozenset())
    assert references.state("one", ()) == NOTHING
    assert A in references
    assert references.state("two", ()) == Difference(frozenset(), frozenset({A, B}))
    assert A not in references


def test_pod_that_refers_to_others_now() -> None:
    references = References()
    references.state("one", {A})
    assert references.state("one", {A}) == NOTHING
    assert references.state("one", {B}) == Difference(frozenset({B}), frozenset({A}))
    assert references.state("unknown", ()) == NOTHING
