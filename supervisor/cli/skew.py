"""Words about an agent of another version than this command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def skew_words(about: Mapping[str, Any], version: str) -> str:
    """Words about an answer to `/version`; none when it is of this command's ``version``."""
    return (
        "" if about["gitVersion"] == version else f"this command is {version}: restart the agent to have both the same"
    )
