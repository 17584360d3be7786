"""Counts of what the master knows of pods: they fall, and what rises is a second owner of a pod's state."""

from __future__ import annotations

import ast

from tests import house_counts

MOST_COLLECTIONS = 7
"""As many as there are: the records themselves, work queues, the copy of the API server, and what a relist lacks."""
MOST_USES_OF_PARTS = 0
LARGE_CLASSES: dict[str, int] = {}


def test_no_further_collection_by_uid_stands_beside_the_pods_records() -> None:
    found = house_counts.collections_by_uid()
    assert len(found) <= MOST_COLLECTIONS, f"a part of the pod's record instead of one of these: {found}"


def test_no_class_reaches_for_more_of_what_others_own() -> None:
    assert house_counts.uses_of_parts() <= MOST_USES_OF_PARTS


def test_no_further_class_has_many_attributes() -> None:
    large = house_counts.large_classes()
    assert {name: count for name, count in large.items() if count > LARGE_CLASSES.get(name, 0)} == {}


def test_no_method_has_a_name_that_many_classes_have() -> None:
    assert house_counts.widespread_names() == {}


def test_public_methods_are_found_without_values_and_common_names() -> None:
    source = """
class Owner:
    @property
    def value(self): ...
    def close(self): ...
    def _private(self): ...
    def forget(self): ...
    async def ask(self): ...
"""
    [owner] = ast.parse(source).body
    assert isinstance(owner, ast.ClassDef)
    assert list(house_counts.public_methods(owner)) == ["forget", "ask"]


def test_every_exception_is_an_attribute_that_there_is() -> None:
    there = {(each.owner, each.name) for room in house_counts.ROOMS for each in house_counts.attributes(room)}
    assert there >= house_counts.OTHERWISE_KEYED


def test_attributes_are_found_with_their_types_wherever_init_gives_them() -> None:
    source = """
class Owner:
    _given: dict[str, str]
    public: int = 0

    def __init__(self):
        self._by_uid: dict[str, int] = {}
        self.a, self.b = 1, 2
        if self.a:
            self._late: set[str] = set()
        local: dict[str, int] = {}

    def other(self):
        self._elsewhere = 1
"""
    [owner] = ast.parse(source).body
    assert isinstance(owner, ast.ClassDef)
    found = {(each.name, each.type) for each in house_counts._attributes_of(owner)}
    assert found == {
        ("_given", "dict[str, str]"),
        ("_by_uid", "dict[str, int]"),
        ("a", ""),
        ("b", ""),
        ("_late", "set[str]"),
    }
