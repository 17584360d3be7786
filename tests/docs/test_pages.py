"""The pages tell what a fresh user sees, and the site has every page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ipc.host.pause_process import runtime_dir
from supervisor.config.socket_path import admin_socket_path
from tests.docs.pages import INSTANCES, PAGES, QUICK, ROOT, renewed
from tests.support.podman_service import why_not

BUILD_DEADLINE_S: Final = 100.0
FENCED: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.podman
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "name", [pytest.param(page, marks=[] if page in QUICK else pytest.mark.slow) for page in PAGES]
)
def test_commands_print_what_the_page_says(name: str) -> None:
    if reason := why_not():
        pytest.skip(reason)
    if taken := [name for name in INSTANCES if admin_socket_path(name).exists()]:
        pytest.skip(f"an agent of this user is called {taken[0]} as one of the pages")
    if (netns := runtime_dir(os.environ, os.getuid()) / "libpod" / "tmp" / "rootless-netns").exists():
        pytest.skip(f"{netns}: Podman's clean-up of another storage would take the network of this user's bridges away")
    page = (ROOT / name).read_text()
    assert renewed(page) == page, f"see `python -m tests.docs {name}`"


def captures() -> Iterator[tuple[str, str, str]]:
    """Page, kind of block and first command of everything that looks as if it had been typed into a shell."""
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for kind, text in FENCED.findall(page.read_text()):
            if command := re.search(r"^\$ (.*)", text, re.MULTILINE):
                yield str(page.relative_to(ROOT)), kind, command[1].partition("  ")[0]


def test_every_capture_is_run() -> None:
    found = list(captures())
    assert [(page, command) for page, kind, command in found if kind != "console" or page not in PAGES] == []
    assert {page for page, kind, _ in found if kind == "console"} == {*PAGES}


def test_the_site_has_every_page_and_no_dead_anchor(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(ROOT / ".mkdocs.yml")]
    done = subprocess.run(
        [*build, "--site-dir", str(tmp_path / "site")],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=BUILD_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO"))
    assert (tmp_path / "site" / "tutorial.html").exists()
    first = (tmp_path / "site" / "index.html").read_text()
    assert 'href="tutorial.html"' in first, "what / shows"
    assert 'href="site.css"' in first, "tables that are wider than the page"
