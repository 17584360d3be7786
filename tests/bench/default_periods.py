"""Agents as a user has them: the periods are the default ones, which the end-to-end tests shorten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.e2e.agent import Agent

IMPATIENT: Final = (
    "relistPeriod",
    "quietRelistPeriod",
    "fileCheckFrequency",
    "housekeepingPeriod",
    "nodeStatusUpdateFrequency",
)


def set_default_periods(agent: Agent, workers: Mapping[str, Any]) -> None:
    """Before it is started. ``workers``: that section of its configuration, whole."""
    for name in IMPATIENT:
        del agent.settings[name]
    agent.configure({"workers": dict(workers)})
