"""The rooms of the three packages, with their sizes and the arrows between them: ``python -m tests.house``.

A room is a package; its modules are the files that lie in it, not those of the packages within it, which are rooms of
their own. An arrow is an import of one room's modules by another's, wherever the import stands. The direction of each
pair of rooms is stated in ``tests/unit/test_imports.py``; this module reads the source, and ``docs/architecture.md``
holds the table that it prints (``--write`` puts it there).
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("ipc", "supervisor", "workers")
PAGE: Final = ROOT / "docs" / "architecture.md"
BEGIN: Final = "<!-- rooms -->"
END: Final = "<!-- /rooms -->"
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of nodes that hold statements, or what holds some."""


class Room(NamedTuple):
    name: str
    """Dotted: ``workers.compute``."""
    modules: tuple[str, ...]
    owns: str
    """The first sentence of its docstring."""
    imports: frozenset[str]
    """Other rooms of the same package."""


@cache
def rooms() -> Mapping[str, Room]:
    """Every package with a module of its own, by name, in the order of the alphabet."""
    folders = sorted(path.parent for package in PACKAGES for path in (ROOT / package).rglob("__init__.py"))
    found = {_name(folder): folder for folder in folders if len(list(folder.glob("*.py"))) > 1}
    return {name: _room(name, folder, frozenset(found)) for name, folder in found.items()}


def _name(folder: Path) -> str:
    return ".".join(folder.relative_to(ROOT).parts)


def _room(name: str, folder: Path, every: frozenset[str]) -> Room:
    files = sorted(folder.glob("*.py"))
    trees = {file: syntax_tree(file) for file in files}
    docstring = ast.get_docstring(trees[folder / "__init__.py"]) or ""
    imports = {room_of(module, every) for tree in trees.values() for module in imported_modules(tree)}
    return Room(
        name,
        tuple(file.stem for file in files if file.stem != "__init__"),
        docstring.split("\n\n")[0].replace("\n", " "),
        frozenset(other for other in imports if other is not None and _package(other) == _package(name)) - {name},
    )


@cache
def syntax_tree(file: Path) -> ast.Module:
    """Syntax tree of a file of the three packages: several rules look at each."""
    return ast.parse(file.read_text())


def trees_with(*words: str) -> Iterator[tuple[Path, ast.Module]]:
    """Files of the three packages that have one of these words somewhere, and their syntax trees: to parse a file takes
    a hundred times as long as to look for a word."""
    for file in sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        text = file.read_text()
        if any(word in text for word in words):
            yield file, ast.parse(text)


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement, wherever it stands: a tenth of what `ast.walk` goes through."""
    open_nodes = [tree]
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, ast.stmt):
            yield node
        for field in _BLOCKS:
            open_nodes += getattr(node, field, ())


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str, every: frozenset[str]) -> str | None:
    """The innermost room that a dotted name leads into; None for other people's packages."""
    parts = module.split(".")
    if parts[0] not in PACKAGES:
        return None
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in every), None)


def _package(name: str) -> str:
    return name.partition(".")[0]


def circles(found: Mapping[str, Room]) -> list[tuple[str, ...]]:
    """Rooms that import one another, directly or by others: strongly connected components of more than one room."""
    reach = {name: _reachable(name, found) for name in found}
    return sorted(
        {tuple(sorted({name, *(o for o in reach[name] if name in reach[o])})) for name in found if name in reach[name]}
    )


def _reachable(start: str, found: Mapping[str, Room]) -> frozenset[str]:
    seen: set[str] = set()
    open_rooms = [start]
    while open_rooms:
        for other in found[open_rooms.pop()].imports - seen:
            seen.add(other)
            open_rooms.append(other)
    return frozenset(seen)


def wrong_arrows(found: Mapping[str, Room], order: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Arrows to a room that stands higher in its package's order, which goes from the ground up."""
    floors = {name: floor for names in order.values() for floor, name in enumerate(names)}
    return [
        (room.name, other)
        for room in found.values()
        for other in sorted(room.imports)
        if floors[other] > floors[room.name]
    ]


def table(found: Mapping[str, Room], order: Mapping[str, Sequence[str]]) -> str:
    lines = ["| room | owns | modules | imports |", "| --- | --- | ---: | --- |"]
    for package, names in order.items():
        for name in reversed(names):
            room = found[name]
            imports = ", ".join(_short(other, package) for other in names if other in room.imports)
            lines.append(f"| `{name}` | {room.owns} | {len(room.modules)} | {imports or '-'} |")
    arrows = sum(len(room.imports) for room in found.values())
    wrong, round_trips = wrong_arrows(found, order), circles(found)
    modules = sum(len(room.modules) for room in found.values())
    lines += [
        "",
        f"{len(found)} rooms, {modules} modules, {arrows} arrows; "
        f"{len(round_trips)} circles, {len(wrong)} arrows against the direction.",
    ]
    return "\n".join(lines)


def _short(name: str, package: str) -> str:
    return name.removeprefix(f"{package}.") if name != package else "(top)"


def with_table(page: str, made: str) -> str:
    """The page with another table between its two comments. Raises ValueError when it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has no place for the table of rooms")
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def main() -> None:
    from tests.unit.test_imports import ORDER  # the table is the test's

    parser = argparse.ArgumentParser(prog="python -m tests.house", description="The table of rooms.")
    parser.add_argument("--write", action="store_true", help="put it into docs/architecture.md")
    made = table(rooms(), ORDER)
    if parser.parse_args().write:
        PAGE.write_text(with_table(PAGE.read_text(), made))
    else:
        print(made)


if __name__ == "__main__":
    main()
