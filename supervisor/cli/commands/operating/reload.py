"""`rootlet reload`: the configuration file is read again."""

from __future__ import annotations

import click

from supervisor.cli.options import Failure, agent, agent_options
from supervisor.cli.printers.tables import printable


@click.command()
@agent_options
@click.option(
    "--accept-manifests",
    is_flag=True,
    help="Also take the manifests as they are now: a manifest directory that was replaced, and misses manifests, is "
    "in doubt, and its pods go on until it is back. This ends the missing ones.",
)
@click.pass_context
def reload(ctx: click.Context, accept_manifests: bool) -> None:
    """Have the running agent read its configuration file again, as SIGHUP does; say what changed.

    A file with something wrong changes nothing. Settings that need a restart are named.
    """
    with agent(ctx) as client:
        result = client.reload(accept_manifests=accept_manifests)
    if result.failed:
        raise Failure(result.message)
    for change in result.results or ("nothing in the configuration changed",):
        click.echo(printable(change))
