"""A line on stderr when what is shown may be out of date, because Podman does not answer the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipc.host import clock
from ipc.text.human import human_duration
from supervisor.client.http import AgentClient


def warn_if_stale(client: AgentClient) -> None:
    """Asks the agent about itself."""
    warning = stale_warning(client.get("/version"), clock.wall())
    if warning:
        click.echo(warning, err=True)


def stale_warning(about: Mapping[str, Any], now: float) -> str:
    """Empty while Podman answers; ``now`` in epoch seconds."""
    since = about.get("runtimeSilentSince", 0.0)
    if not since:
        return ""
    age = human_duration(max(0.0, now - since))
    return f"warning: Podman has not answered for {age}, pods are shown as they were before: {about['runtimeMessage']}"
