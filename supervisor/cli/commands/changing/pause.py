"""`rootlet pause`."""

from __future__ import annotations

import click

from supervisor.cli.changing.changes import pods_choice, pods_options
from supervisor.cli.changing.freezing import freeze_pods
from supervisor.cli.options import agent, agent_options


@click.group()
def pause() -> None:
    """Pause the processes of pods."""


@pause.command()
@pods_options
@agent_options
@click.pass_context
def pod(ctx: click.Context, names: tuple[str, ...], selector: str, everything: bool, namespace: str) -> None:
    """Pause the processes of pods: they get no CPU, and keep their memory.

    Their probes do not run meanwhile, and nothing of them is started anew. A paused pod is not Ready, can be deleted,
    and stays paused over a restart of the agent. It takes cgroups that are delegated to this user.

    \b
    rootlet pause pod web db
    rootlet pause pod -l app=shop
    """
    choice = pods_choice(names, selector, everything, namespace)
    with agent(ctx) as client:
        freeze_pods(client, choice, client.pause_pod, "paused")
