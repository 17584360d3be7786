"""`rootlet gc`: collects garbage at once."""

from __future__ import annotations

import click

from ipc.host import clock
from supervisor.cli.options import agent, agent_options
from supervisor.cli.printers.garbage import collected_lines
from supervisor.cli.printers.tables import printable


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed, and why.")
@agent_options
@click.pass_context
def gc(ctx: click.Context, dry_run: bool) -> None:
    """Remove images that nobody uses, dead containers beyond the node's maximum, and directories of pods that are gone.

    However full the disk is. Which images may be removed at all says imageGCScope; none is that a container of anybody
    or a wanted pod uses, that is pinned, or that is younger than imageMinimumGCAge.

    \b
    rootlet gc --dry-run
    rootlet gc
    """
    with agent(ctx) as client:
        report = client.garbage() if dry_run else client.collect_garbage()
    for line in collected_lines(report, clock.wall()):
        click.echo(printable(line))
    for error in report["errors"]:
        click.echo(f"error: {printable(error)}", err=True)
    if report["errors"]:
        ctx.exit(1)
