"""`rootlet loglevel`: which lines the running agent logs."""

from __future__ import annotations

import click

from supervisor.cli.options import Failure, agent, agent_options


@click.command()
@click.argument("changes", nargs=-1, metavar="[[AREA=]LEVEL]...")
@agent_options
@click.pass_context
def loglevel(ctx: click.Context, changes: tuple[str, ...]) -> None:
    """Show or change which lines the running agent logs, until it starts again or gets SIGHUP.

    LEVEL is debug, info, warning or error, or klog's number: from 4 on that is debug. AREA is a room of the agent or a
    module of one; the level `default` takes its own away.

    \b
    rootlet loglevel
    rootlet loglevel debug
    rootlet loglevel pleg=debug libpod=warning
    rootlet loglevel pleg=default
    """
    with agent(ctx) as client:
        for change in changes:
            area, _, level = change.rpartition("=")
            if result := client.set_log_level(area, level):
                raise Failure(result, prefix="error: ")
        found = client.log_levels()
    click.echo(found["level"])
    for area, level in sorted(found["areas"].items()):
        click.echo(f"{area}={level}")
