"""Every path, link and term of the hand-written pages exists, and the architecture page stays short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.config.socket_path import DEFAULT_INSTANCE
from workers.api_server.kubelet_routes import kubelet_routes
from workers.api_server.routes import route_table
from workers.api_server.store.site import AppState
from workers.api_server.store.store import Store

ROOT: Final = Path(__file__).parents[2]
GENERATED: Final = frozenset({"parity.md", "pod-fields.md"})
PAGES: Final = (
    *sorted(ROOT.glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED),
)
GLOSSARY: Final = ROOT / "docs" / "glossary.md"
CONTRIBUTING: Final = ROOT / "CONTRIBUTING.md"
ARCHITECTURE: Final = ROOT / "docs" / "architecture.md"
COMPATIBILITY: Final = ROOT / "docs" / "compatibility.md"
DECISIONS: Final = ROOT / "docs" / "decisions"
MAX_DECISION_LINES: Final = 60
MAX_ARCHITECTURE_WORDS: Final = 3000
"""Beside the table of rooms."""
QUESTIONS: Final = 10

_PATH: Final = re.compile(r"`((?:supervisor|workers|ipc|tests|docs|configs)/[\w./-]*)(?:(?:::|#)[\w.]+)?`")
_LINK: Final = re.compile(r"\]\(([^)#\s]+)\)")
_MODULE: Final = re.compile(r"python -m (tests\.[\w.]+)")
_URL: Final = re.compile(r"`(/[^`]*)`")
_PATTERN: Final = re.compile(r":[^/]*\}|:\[\^/\]\*\}")
"""Pattern of a part of a route's path."""
_SOCKET: Final = re.compile(r"RUNTIME_DIR/rootlet/(\w+)\.sock")
_HOME: Final = re.compile(r"`([\w./-]+?)(?:#(\w+))?` \|$")


def lost_paths(page: Path) -> Iterator[str]:
    text = page.read_text()
    yield from (path for path in _PATH.findall(text) if not (ROOT / path).exists())
    yield from (link for link in _LINK.findall(text) if "://" not in link and not (page.parent / link).exists())
    yield from (name for name in _MODULE.findall(text) if not _is_module(ROOT / name.replace(".", "/")))


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the tables below that heading, without the tables' own."""
    section = page.read_text().partition(heading)[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| ---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    assert list(lost_paths(page)) == []


def test_the_socket_that_pages_name_is_that_of_the_usual_instance() -> None:
    named = {(page.name, found) for page in PAGES for found in _SOCKET.findall(page.read_text())}
    assert {instance for _, instance in named if not instance.isupper()} == {DEFAULT_INSTANCE}, named


def test_a_path_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`workers/nowhere.py`, `ipc/link/wire/`, [x](gone.md), [y](page.md), `python -m tests.bench.nothing`"
    )
    assert list(lost_paths(page)) == ["workers/nowhere.py", "gone.md", "tests.bench.nothing"]


def test_every_term_of_the_glossary_is_at_home_where_it_says() -> None:
    lines = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ") and "---" not in line][1:]
    homes = {line: _HOME.search(line) for line in lines}
    assert [line for line, home in homes.items() if home is None] == []
    wrong = [
        home[0] for home in homes.values() if home and home[2] and not re.search(rf"\b{home[2]}\b", _read(home[1]))
    ]
    assert (wrong, len(lines) > 30) == ([], True)


def _read(path: str) -> str:
    file = ROOT / path
    return file.read_text() if file.is_file() else ""


def test_a_listing_answers_where_something_is_decided() -> None:
    asked = rows(CONTRIBUTING, "## Where is X decided?")
    assert len(asked) == QUESTIONS
    modules = [ROOT / room.strip("`") / f"{module.strip('`')}.py" for _, room, module in asked]
    assert [str(module) for module in modules if not module.exists()] == []


def test_decisions_are_short_and_listed() -> None:
    index = (DECISIONS / "README.md").read_text()
    decisions = [page for page in DECISIONS.glob("*.md") if page.name != "README.md"]
    assert [page.name for page in decisions if f"({page.name})" not in index] == []
    assert [page.name for page in decisions if len(page.read_text().splitlines()) > MAX_DECISION_LINES] == []
    assert [page.name for page in decisions if "## Decision" not in page.read_text()] == []


def test_every_route_of_the_api_server_is_stable_or_said_not_to_be() -> None:
    unused: Any = None  # no request is made
    site = AppState(
        store=Store(epoch=0),
        changed=unused,
        master=unused,
        clock=unused,
        board=unused,
        logs_dir=ROOT,
        files=unused,
        podman=unused,
        dialer=unused,
        sockets=unused,
        statistics=unused,
        settings=unused,
    )
    told = {path for row in rows(COMPATIBILITY, "## HTTP on the admin socket") for path in _URL.findall(row[0])}
    assert {_PATTERN.sub("}", route.path) for route in route_table(site, kubelet_routes(site))} == told


def test_the_page_on_the_architecture_is_read_in_ten_minutes() -> None:
    before, _, rest = ARCHITECTURE.read_text().partition("<!-- rooms -->")
    words = (before + rest.partition("<!-- /rooms -->")[2]).split()
    assert len(words) <= MAX_ARCHITECTURE_WORDS, "what is longer belongs in docs/decisions"
