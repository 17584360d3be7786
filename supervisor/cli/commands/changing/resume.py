"""`rootlet resume`."""

from __future__ import annotations

import click

from supervisor.cli.changing.changes import pods_choice, pods_options
from supervisor.cli.changing.freezing import freeze_pods
from supervisor.cli.options import agent, agent_options


@click.group()
def resume() -> None:
    """Let paused pods go on."""


@resume.command()
@pods_options
@agent_options
@click.pass_context
def pod(ctx: click.Context, names: tuple[str, ...], selector: str, everything: bool, namespace: str) -> None:
    """Let the processes of paused pods go on.

    \b
    rootlet resume pod web db
    rootlet resume pod --all
    """
    choice = pods_choice(names, selector, everything, namespace)
    with agent(ctx) as client:
        freeze_pods(client, choice, client.resume_pod, "resumed")
