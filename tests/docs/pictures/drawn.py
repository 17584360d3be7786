"""The pictures by file name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.docs.pictures import network_modes, pod_life

DOCS: Final = Path(__file__).parents[3] / "docs"


def drawn() -> Mapping[str, str]:
    """Every picture's text by its file's name below `docs/`."""
    pictures = {
        "pod-life.svg": pod_life.draw(),
        "network-modes.svg": network_modes.draw((DOCS / "network.md").read_text()),
    }
    return {name: "".join(f"{line}\n" for line in lines) for name, lines in pictures.items()}
