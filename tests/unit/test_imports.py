"""Reads the source and keeps the import directions, and four facts, true.

Directions: supervisor → ipc ← workers; only ``supervisor/__main__.py`` names workers; within each of the three, a room
imports only rooms that stand below it in `ORDER`. Facts: podman is imported in one file, fork is called in one, setns
in one, one reads the host's clocks and one the loop's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests import house

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("ipc", "supervisor", "workers")

PODMAN_FILE: Final = "workers/libpod/podman_py.py"
FORK_FILES: Final = frozenset({"supervisor/processes/zygote.py", "workers/userns/fork_server.py"})
"""The second runs in Podman's namespaces, in an interpreter of its own."""
CLOCK_FILE: Final = "ipc/host/clock.py"
LOOP_CLOCK_FILE: Final = "ipc/link/eventloop/loop_clock.py"
NAMESPACES_FILE: Final = "workers/dialer/namespaces.py"
ENTRY_POINT: Final = "supervisor/__main__.py"

MAY_IMPORT: Final[Mapping[str, frozenset[str]]] = {
    "ipc": frozenset({"ipc"}),
    "supervisor": frozenset({"ipc", "supervisor"}),
    "workers": frozenset({"ipc", "workers"}),
}
FORKS: Final = frozenset({"os.fork", "os.forkpty", "pty.fork"})
CLOCKS: Final = frozenset(
    {
        *(f"time.{name}" for name in ("clock_gettime", "gmtime", "localtime", "monotonic", "perf_counter", "time")),
        *(f"time.{name}_ns" for name in ("clock_gettime", "monotonic", "perf_counter", "time")),
        *(f"datetime.datetime.{name}" for name in ("now", "today", "utcnow")),
        "datetime.date.today",
    }
)

ORDER: Final[Mapping[str, tuple[str, ...]]] = {
    "ipc": (
        "ipc.host.text",
        "ipc.host",
        "ipc.host.process",
        "ipc.host.log",
        "ipc.host.libpod",
        "ipc.k8s.resources",
        "ipc.k8s.api.v1",
        "ipc.k8s.api",
        "ipc.k8s.patching",
        "ipc.k8s.kubeconfig",
        "ipc.k8s.network",
        "ipc.k8s.scheduling",
        "ipc.k8s.podresources",
        "ipc.k8s.podobjects",
        "ipc.k8s.api.validation",
        "ipc.k8s.api.validation.pods",
        "ipc.k8s.api.support",
        "ipc.k8s.kubecontainer",
        "ipc.k8s.eviction",
        "ipc.k8s.nodestatus",
        "ipc.link.eventloop",
        "ipc.link.metrics",
        "ipc.link.shm",
        "ipc.link.wire",
        "ipc.link.messages",
    ),
    "supervisor": (
        "supervisor.state",
        "supervisor.client",
        "supervisor.status",
        "supervisor.patching",
        "supervisor.sources.documents",
        "supervisor.config",
        "supervisor.config.resolution",
        "supervisor.protocol",
        "supervisor.sources.objects",
        "supervisor.sources",
        "supervisor.admission",
        "supervisor.processes",
        "supervisor.pods",
        "supervisor.managers",
        "supervisor.persistentvolume",
        "supervisor.eviction",
        "supervisor.record",
        "supervisor.podcontrol",
        "supervisor.node",
        "supervisor.desired",
        "supervisor.loop",
        "supervisor.control",
        "supervisor.doctor",
        "supervisor.cli",
        "supervisor.cli.printers",
        "supervisor.cli.describe",
        "supervisor.cli.output",
        "supervisor.cli.changing",
        "supervisor.cli.streams",
        "supervisor.load_test",
        "supervisor",
        "supervisor.cli.commands.reading",
        "supervisor.cli.commands.changing",
        "supervisor.cli.commands.entering",
        "supervisor.cli.commands.operating",
        "supervisor.cli.commands.about",
    ),
    "workers": (
        "workers.fs",
        "workers.statsapi",
        "workers.nodestatus",
        "workers.kubeclient",
        "workers.certificates",
        "workers.userns.steps",
        "workers.userns",
        "workers.podhttp",
        "workers.kubecontainer",
        "workers.proc",
        "workers.podman_files",
        "workers.libpod",
        "workers.env",
        "workers.logs",
        "workers.network",
        "workers.exec",
        "workers.compute",
        "workers.images",
        "workers.dialer",
        "workers.prober",
        "workers.specgen",
        "workers.sync",
        "workers.cm",
        "workers.lifecycle",
        "workers.volumemanager.plugins",
        "workers.volumemanager",
        "workers.stats",
        "workers.eviction",
        "workers.kuberuntime",
        "workers.containers",
        "workers.pleg",
        "workers.spdy",
        "workers.tracing",
        "workers.api_server.core",
        "workers.api_server.access",
        "workers.api_server.store",
        "workers.api_server.printers",
        "workers.api_server.streams",
        "workers.api_server.metrics",
        "workers.api_server.handlers",
        "workers.api_server.kubelet",
        "workers.api_server",
        "workers.cluster.events",
        "workers.cluster.node",
        "workers.cluster.objects",
        "workers.cluster.pods",
        "workers.cluster",
        "workers",
    ),
}
"""The rooms of each package from the ground up: of two rooms only the later one may import the earlier one."""
WINGS: Final = ("host", "k8s", "link")
"""Of ipc, from the ground up."""
OTHER_SIZES: Final[Mapping[str, str]] = {
    "supervisor.state": "a module for each file that outlives the agent, and how such files are kept",
    "ipc.k8s.api.v1": "a module for each subject of Kubernetes' types",
    "supervisor": "the agent, its master, and a module for each thing that the master has beside the sync loop",
    "ipc.k8s.scheduling": "the three helpers of the scheduler's that a node needs, too",
    "workers.kuberuntime": "a module for each step of a sync",
    "workers.cluster.events": "the shape of an event, its limits, its way",
    "workers.tracing": "reading, assembling and sending; the last is an extra",
}
"""Why a room has fewer than 4 or more than 14 modules."""

_CLOCKS_TIME: Final = re.compile(r"\.\s*time\b")


class Source(NamedTuple):
    path: Path
    text: str

    @property
    def tree(self) -> ast.Module:
        return house.syntax_tree(self.path)

    def names_one_of(self, words: Iterable[str]) -> bool:
        """Whether the last part of any of these dotted names stands in it: where none does, nothing is parsed."""
        return any(word.rpartition(".")[2] in self.text for word in words)


Sources = Mapping[str, Source]


@pytest.fixture(scope="module")
def sources() -> Sources:
    """By the path from the root, every Python file of the three packages."""
    return sources_below(*(ROOT / package for package in PACKAGES))


def sources_below(*folders: Path) -> Sources:
    files = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return {str(path.relative_to(ROOT)): Source(path, path.read_text()) for path in files}


def imported(tree: ast.AST) -> Iterator[str]:
    """Dotted names of all imported modules and names, wherever the import stands."""
    for node in house.statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def used(tree: ast.AST) -> Iterator[str]:
    """Dotted names that are read, with the names of imports in place of their aliases: `from time import time` too."""
    aliases = dict(alias for node in ast.walk(tree) for alias in _aliases(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            head, _, tail = _dotted(node).partition(".")
            name = aliases.get(head, head)
            yield f"{name}.{tail}" if tail else name


def _aliases(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        yield from ((alias.asname, alias.name) for alias in node.names if alias.asname)
    elif isinstance(node, ast.ImportFrom):
        yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{_dotted(node.value)}.{node.attr}"
    return "?"


def files_that_use(sources: Sources, names: Iterable[str]) -> set[str]:
    wanted = frozenset(names)
    found = {file: source.tree for file, source in sources.items() if source.names_one_of(wanted)}
    return {file for file, tree in found.items() if wanted.intersection(used(tree))}


def files_that_import(sources: Sources, package: str) -> set[str]:
    within = f"{package}."
    found = {file: source.tree for file, source in sources.items() if source.names_one_of([package])}
    return {file for file, tree in found.items() if any(f"{name}.".startswith(within) for name in imported(tree))}


def files_that_name(sources: Sources, name: str) -> set[str]:
    """Files with an attribute or name of that spelling, whatever it hangs on (a ctypes library, say)."""
    found = {file: source.tree for file, source in sources.items() if source.names_one_of([name])}
    return {file for file, tree in found.items() if any(each.split(".")[-1] == name for each in used(tree))}


# --- the rules --------------------------------------------------------------------------------------------------


def test_there_is_something_to_check(sources: Sources) -> None:
    assert {file.split("/")[0] for file in sources} == set(PACKAGES)


def test_imports_point_to_ipc(sources: Sources) -> None:
    wrong = {
        (file, name)
        for file, source in sources.items()
        if file != ENTRY_POINT
        for name in imported(source.tree)
        if name.split(".")[0] in PACKAGES and name.split(".")[0] not in MAY_IMPORT[file.split("/")[0]]
    }
    assert wrong == set()


def test_nothing_imports_the_tests(sources: Sources) -> None:
    assert files_that_import(sources, "tests") == set()


@pytest.mark.parametrize("suite", ["unit", "contract"])
def test_what_is_measured_is_no_part_of_what_is_tested(suite: str) -> None:
    suite_sources = sources_below(ROOT / "tests" / suite)
    assert suite_sources
    assert files_that_import(suite_sources, "tests.bench") == set()


def test_podman_is_imported_in_one_file(sources: Sources) -> None:
    assert files_that_import(sources, "podman") == {PODMAN_FILE}


def test_fork_is_called_where_there_is_one_thread(sources: Sources) -> None:
    assert files_that_use(sources, FORKS) == FORK_FILES
    assert files_that_import(sources, "multiprocessing") == set()


def test_the_clock_is_read_in_one_file(sources: Sources) -> None:
    assert files_that_use(sources, CLOCKS) == {CLOCK_FILE}
    found = {file: source.tree for file, source in sources.items() if _CLOCKS_TIME.search(source.text)}
    assert {file for file, tree in found.items() if reads_a_clock_s_time(tree)} == {CLOCK_FILE, LOOP_CLOCK_FILE}


def reads_a_clock_s_time(tree: ast.Module) -> bool:
    """Whether it calls the method of that name of anything, such as an event loop."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(called, ast.Attribute) and called.attr == "time" for called in calls)


def test_setns_is_called_in_one_file(sources: Sources) -> None:
    assert files_that_name(sources, "setns") == {NAMESPACES_FILE}


# --- rooms --------------------------------------------------------------------------------------------------------


def test_every_room_has_its_place_in_the_order() -> None:
    assert set(house.rooms()) == {name for names in ORDER.values() for name in names}


def test_the_wings_of_ipc_stand_one_upon_the_other() -> None:
    wings = [name.split(".")[1] for name in ORDER["ipc"]]
    assert wings == sorted(wings, key=WINGS.index)


def test_rooms_import_only_what_stands_below_them() -> None:
    assert house.wrong_arrows(house.rooms(), ORDER) == []
    assert house.circles(house.rooms()) == []


def test_rooms_have_4_to_14_modules_or_a_reason() -> None:
    sizes = {name: len(room.modules) for name, room in house.rooms().items()}
    assert {name for name, size in sizes.items() if not 4 <= size <= 14} == set(OTHER_SIZES)


def test_every_room_says_in_a_sentence_what_it_owns() -> None:
    assert {name: room.owns for name, room in house.rooms().items() if not room.owns.endswith(".")} == {}


def test_the_page_of_the_architecture_has_the_table_of_rooms() -> None:
    page = house.PAGE.read_text()
    assert house.with_table(page, house.table(house.rooms(), ORDER)) == page, "python -m tests.house --write"


@pytest.mark.parametrize(
    ("arrows", "found"),
    [
        ({"a": "b", "b": "c", "c": ""}, []),
        ({"a": "b", "b": "c", "c": "a"}, [("a", "b", "c")]),
        ({"a": "b", "b": "a", "c": "a"}, [("a", "b")]),
    ],
)
def test_circles_are_found(arrows: dict[str, str], found: list[tuple[str, ...]]) -> None:
    made = {name: house.Room(name, ("m",), "", frozenset(others)) for name, others in arrows.items()}
    assert house.circles(made) == found


def test_arrows_against_the_direction_are_found() -> None:
    made = {name: house.Room(name, ("m",), "", frozenset({"b", "a"} - {name})) for name in "ab"}
    assert house.wrong_arrows(made, {"p": ("a", "b")}) == [("a", "b")]


# --- what the rules see -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import time\ntime.time()", "time.time"),
        ("import time as t\nt.monotonic()", "time.monotonic"),
        ("from time import time\ntime()", "time.time"),
        ("from time import monotonic_ns as now\nnow()", "time.monotonic_ns"),
        ("from datetime import datetime\ndatetime.now(tz)", "datetime.datetime.now"),
        ("import datetime as dt\ndt.datetime.utcnow()", "datetime.datetime.utcnow"),
        ("from datetime import date\nf = date.today", "datetime.date.today"),
        ("def f():\n    import os\n    return os.fork()", "os.fork"),
        ("from os import fork\nif fork(): pass", "os.fork"),
        ("def f(clock=time.time): pass\nimport time", "time.time"),
    ],
)
def test_a_use_is_seen(source: str, name: str) -> None:
    assert name in set(used(ast.parse(source)))
    assert name in CLOCKS | FORKS


@pytest.mark.parametrize(
    "source",
    [
        "loop.time()",
        "self.clock.now()",
        "import time\ntime.sleep(1)",
        "from datetime import datetime\ndatetime(1, 1, 1)",
    ],
)
def test_what_is_no_clock_is_not_taken_for_one(source: str) -> None:
    assert not CLOCKS.intersection(used(ast.parse(source)))


def test_imports_are_seen_wherever_they_stand() -> None:
    source = (
        "import podman.api\nif TYPE_CHECKING:\n    from workers.kubecontainer.labels import ATTEMPT\n"
        "try:\n    pass\nexcept A:\n    import a\nelse:\n    import b\nfinally:\n    import c\n"
        "match x:\n    case 1:\n        import d\nfor e in x:\n    pass\nelse:\n    import e\n"
        "class F:\n    with g:\n        async def f():\n            import supervisor"
    )
    modules = {"podman.api", "workers.kubecontainer.labels.ATTEMPT", "supervisor"}
    assert set(imported(ast.parse(source))) == modules | set("abcde")
