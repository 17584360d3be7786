"""Files that are installed with the program: configuration, unit, manifests of the demo, documentation."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from supervisor.cli.options import Failure

_ROOT: Final = Path(__file__).resolve().parents[2]
SHARE: Final = _ROOT / "supervisor" / "share"
"""Where a wheel has them."""
IN_CHECKOUT: Final = {
    "rootlet.yaml": "configs/rootlet.yaml",
    "rootlet.service": "configs/systemd/rootlet.service",
    "demo": "configs/demo/manifests",
    "demo-image": "configs/demo/image",
    "docs": "docs",
    "CHANGELOG.md": "CHANGELOG.md",
}
"""Where a checkout has each of them; pyproject.toml puts them into the wheel by the same names."""


def installed_file(name: str) -> Path:
    """Path of a file or directory. Raises Failure when the installation lacks it."""
    found = next((path for path in (SHARE / name, _ROOT / IN_CHECKOUT[name]) if path.exists()), None)
    if found is None:
        raise Failure(f"this installation of Rootlet lacks {SHARE / name}: install it anew")
    return found


def installed_pages() -> dict[str, Path]:
    """Files of the documentation by the names of its pages, such as ``howto/boot``. Raises Failure."""
    directory = installed_file("docs")
    return {str(path.relative_to(directory).with_suffix("")): path for path in sorted(directory.rglob("*.md"))}


def installed_text(name: str) -> str:
    """Raises Failure, OSError."""
    return installed_file(name).read_text()


def own_program() -> str:
    """Path by which this program can be started again, as a link of pipx where it is one."""
    program = shutil.which(sys.argv[0]) or os.path.join(os.path.dirname(sys.executable), "rootlet")
    return os.path.abspath(program)
