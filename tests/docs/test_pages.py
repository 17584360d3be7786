"""The pages tell what a fresh user sees, and the site has every page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.socket_path import admin_socket_path, runtime_dir
from tests.docs.pages import INSTANCE, PAGES, renewed
from tests.podman_service import why_not

ROOT: Final = Path(__file__).parents[2]
BUILD_DEADLINE_S: Final = 100.0


@pytest.mark.slow
@pytest.mark.podman
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", PAGES)
def test_commands_print_what_the_page_says(name: str) -> None:
    if reason := why_not():
        pytest.skip(reason)
    if admin_socket_path(INSTANCE).exists():
        pytest.skip(f"an agent of this user is called {INSTANCE} as that of the pages")
    if (netns := runtime_dir(os.environ, os.getuid()) / "libpod" / "tmp" / "rootless-netns").exists():
        pytest.skip(f"{netns}: Podman's clean-up of another storage would take the network of this user's bridges away")
    page = (ROOT / "docs" / name).read_text()
    assert renewed(page) == page, "see `python -m tests.docs`"


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
