"""`rootlet uncordon`: the end of a drain."""

from __future__ import annotations

import click

from supervisor.cli.options import Failure, agent, agent_options


@click.command()
@agent_options
@click.pass_context
def uncordon(ctx: click.Context) -> None:
    """Give a drained node its pods back: those that have ended for it begin anew."""
    with agent(ctx) as client:
        (node,) = client.get("/api/v1/nodes")["items"]
        result = client.uncordon()
        if result.failed:
            raise Failure(result.message)
        click.echo(f"node/{node['metadata']['name']} {result.results[0]}")
