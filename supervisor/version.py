"""Which Rootlet this is."""

from __future__ import annotations

from importlib import metadata

UNINSTALLED = "0+unknown"
"""Run from a checkout that was not installed."""


def own_version() -> str:
    """The installed distribution's version."""
    try:
        return metadata.version("rootlet")
    except metadata.PackageNotFoundError:
        return UNINSTALLED
