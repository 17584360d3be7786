"""`rootlet drain`: all pods end in order of their priority, and the agent goes on without them."""

from __future__ import annotations

import click

from supervisor.cli.changing.draining import end_all_pods
from supervisor.cli.options import FOREVER_S, agent, agent_options, duration_s


@click.command()
@click.option("--timeout", callback=duration_s, default="0s", help="How long to wait for the pods' ends; 0s: for ever.")
@agent_options
@click.pass_context
def drain(ctx: click.Context, timeout: float) -> None:
    """End all pods in order of their priority, and admit none until `rootlet uncordon`.

    Each pod has its own grace period, or what shutdownGracePeriod leaves it. Pods stay listed, as Failed or Succeeded.
    An agent that starts anew keeps the node drained; a host that starts anew does not.
    """
    with agent(ctx) as client:
        end_all_pods(client, timeout or FOREVER_S)
