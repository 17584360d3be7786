"""Path of the configuration file when nobody names one: one rule for the agent and for what is asked about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def usual_config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_CONFIG_HOME/rootlet/rootlet.yaml``; a value that is not absolute does not count, as that specification
    says."""
    named = environ.get("XDG_CONFIG_HOME", "")
    base = Path(named) if named.startswith("/") else Path(os.path.expanduser("~")) / ".config"
    return base / "rootlet" / "rootlet.yaml"


def chosen_config_path(named: Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file that was named, else the usual one where it exists; None for all defaults."""
    usual = usual_config_path(environ)
    return named if named is not None else usual if os.path.lexists(usual) else None
