"""Warnings beside what is shown: it may be out of date, as Podman does not answer; the agent is of another version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ipc.host import clock
from ipc.host.text.human import human_duration
from ipc.host.text.json_types import Json

if TYPE_CHECKING:
    from supervisor.client.http import AgentClient


def warn_if_stale(client: AgentClient) -> None:
    """Asks the agent about itself."""
    warning = stale_warning(client.get("/version"), clock.wall())
    if warning:
        click.echo(warning, err=True)


def stale_warning(about: Json, now: float) -> str:
    """Empty while Podman answers; ``now`` in epoch seconds."""
    since = about.get("runtimeSilentSince", 0.0)
    if not since:
        return ""
    age = human_duration(max(0.0, now - since))
    return f"warning: Podman has not answered for {age}, pods are shown as they were before: {about['runtimeMessage']}"


def skew_words(about: Json, version: str) -> str:
    """Words about an answer to `/version`; none when it is of this command's ``version``."""
    return (
        "" if about["gitVersion"] == version else f"this command is {version}: restart the agent to have both the same"
    )
