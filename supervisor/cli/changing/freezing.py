"""Pods that are paused and resumed, one after the other, as it is told."""

from __future__ import annotations

from collections.abc import Callable

import click

from supervisor.cli.changing.changes import Choice, each
from supervisor.cli.changing.restarts import pods_of
from supervisor.cli.manifests import Target
from supervisor.client.http import AgentClient


def freeze_pods(client: AgentClient, choice: Choice, act: Callable[[str, str], None], done: str) -> None:
    """Pause or resume each pod, whatever becomes of the others. Raises Failure with all errors."""

    def freeze(target: Target) -> None:
        act(target.namespace, target.name)
        click.echo(f"pod/{target.name} {done}")

    each(pods_of(client, choice, done), freeze)
