"""Build hook of the wheel: man pages and completions, made of the commands themselves (pyproject.toml names it)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg, misc]  # hatchling is there while it builds alone
    """Puts files that are no part of a package below ``share`` of the environment, where pipx and man look."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable installation has none: its commands change."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from supervisor.cli.completion_scripts import SCRIPTS
        from supervisor.cli.man_pages import man_pages

        made = Path(self.directory) / "share"
        files = {f"man/man1/{name}": text for name, text in man_pages().items()}
        files |= {script.installed: script.text for script in SCRIPTS.values()}
        for name, text in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            build_data["shared_data"][str(path)] = f"share/{name}"
