"""Counts of what the master knows of pods, and where it lies: ``python -m tests.house_counts``.

The aim is one record for each pod, so that one place answers why a pod waits. A collection by UID beside that record is
a second place, a class of many attributes is one that knows too much, and ``_parts.`` is a reach into other classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests import house

ROOMS: Final = (
    "supervisor.pods",
    "supervisor.managers",
    "supervisor.record",
    "supervisor.podcontrol",
    "supervisor.node",
    "supervisor.desired",
    "supervisor.loop",
)
OTHERWISE_KEYED: Final = frozenset(
    {
        ("EndedContainers", "_expected"),
        ("EndedContainers", "_inherited"),
        ("EventRecorder", "_of_namespace"),
        ("Feed", "_events"),
        ("ProbeManager", "_restored"),
        ("VolumeUpdates", "_asked_at"),
    }
)
"""Collections by another text than a pod's UID: a container's id, a namespace, an event's or a volume's name."""
_BY_TEXT: Final = re.compile(r"(?:default)?dict\[str,|(?:frozen)?set\[str\]")
MAX_ATTRIBUTES: Final = 15
COMMON_NAMES: Final = frozenset({"close", "read", "run", "start", "stop"})
"""Public methods that any number of classes may have. Any other word that many have leads a reader nowhere."""
MAX_OF_A_NAME: Final = 5


class Attribute(NamedTuple):
    owner: str
    """Name of the class."""
    name: str
    type: str
    """Annotation, as the source has it; empty without one."""


def attributes(room: str) -> Iterator[Attribute]:
    """Attributes that the classes of a room give themselves in ``__init__``, and private fields that they declare."""
    for path in _modules(room):
        classes = (node for node in ast.walk(house.syntax_tree(path)) if isinstance(node, ast.ClassDef))
        for found in classes:
            yield from _attributes_of(found)


def _modules(room: str) -> list[Path]:
    return sorted((house.ROOT / room.replace(".", "/")).glob("*.py"))


def _attributes_of(found: ast.ClassDef) -> Iterator[Attribute]:
    for field in found.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id.startswith("_"):
            yield Attribute(found.name, field.target.id, ast.unparse(field.annotation))
    init = next((each for each in found.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    for node in ast.walk(init) if init is not None else ():
        if isinstance(node, ast.AnnAssign):
            yield from (Attribute(found.name, name, ast.unparse(node.annotation)) for name in _of_self(node.target))
        elif isinstance(node, ast.Assign):
            yield from (Attribute(found.name, name, "") for target in node.targets for name in _of_self(target))


def _of_self(target: ast.expr) -> Iterator[str]:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    for part in parts:
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self":
            yield part.attr


def collections_by_uid() -> list[str]:
    """Collections of pods' UIDs, or by them, as ``Class.attribute``."""
    return [
        f"{each.owner}.{each.name}"
        for room in ROOMS
        for each in attributes(room)
        if _BY_TEXT.match(each.type) and (each.owner, each.name) not in OTHERWISE_KEYED
    ]


def large_classes() -> Mapping[str, int]:
    """Number of attributes of each class that has more than `MAX_ATTRIBUTES`."""
    counts: dict[str, set[str]] = {}
    for room in ROOMS:
        for each in attributes(room):
            counts.setdefault(each.owner, set()).add(each.name)
    return {name: len(names) for name, names in sorted(counts.items()) if len(names) > MAX_ATTRIBUTES}


def widespread_names() -> Mapping[str, list[str]]:
    """Public methods that more than `MAX_OF_A_NAME` classes have, and these; properties are values."""
    owners: dict[str, list[str]] = {}
    for room in ROOMS:
        for path in _modules(room):
            for found in ast.walk(house.syntax_tree(path)):
                if isinstance(found, ast.ClassDef):
                    for name in public_methods(found):
                        owners.setdefault(name, []).append(found.name)
    return {name: classes for name, classes in owners.items() if len(classes) > MAX_OF_A_NAME}


def public_methods(of: ast.ClassDef) -> Iterator[str]:
    """Names of its methods that others call, but for `COMMON_NAMES`."""
    for each in of.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            is_value = any(ast.unparse(decorator) == "property" for decorator in each.decorator_list)
            if not (is_value or each.name.startswith("_") or each.name in COMMON_NAMES):
                yield each.name


def uses_of_parts() -> int:
    """Number of times that a class reaches through ``_parts`` for what another one owns."""
    return sum(path.read_text().count("_parts.") for room in ROOMS for path in _modules(room))


def lines() -> Mapping[str, int]:
    """Lines of each room."""
    return {room: sum(len(path.read_text().splitlines()) for path in _modules(room)) for room in ROOMS}


def main() -> None:
    found = collections_by_uid()
    print(f"{len(found)} collections by UID outside a pod's record:", *found, sep="\n  ")
    print(f"public methods of more than {MAX_OF_A_NAME} classes:", dict(widespread_names()))
    print(f"{uses_of_parts()} uses of _parts.")
    print(f"classes of more than {MAX_ATTRIBUTES} attributes:", dict(large_classes()))
    print("lines:", dict(lines()), "together", sum(lines().values()))


if __name__ == "__main__":
    main()
