"""`rootlet images`: Podman's images as image garbage collection sees them."""

from __future__ import annotations

import click
import msgspec

from ipc.host import clock
from supervisor.cli.options import agent, agent_options
from supervisor.cli.printers.garbage import HEADER, image_rows, is_unused
from supervisor.cli.printers.tables import TablePrinter, printable


@click.command()
@click.option("--unused", is_flag=True, help="Only images that no container and no wanted pod uses.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@agent_options
@click.pass_context
def images(ctx: click.Context, unused: bool, output: str) -> None:
    """Show all images in Podman's storage: when each was last used, by what, and why it is kept.

    An image that is kept for no reason goes when the disk is too full (imageGCHighThresholdPercent), or with
    `rootlet gc`.

    \b
    rootlet images
    rootlet images --unused
    """
    with agent(ctx) as client:
        report = client.garbage()
    found = [image for image in report["images"] if not unused or is_unused(image)]
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=4).decode())
    elif found:
        now = clock.wall()
        rows = (row for image in found for row in image_rows(image, now))
        click.echo(TablePrinter(HEADER).format(rows), nl=False)
    for error in report["errors"]:
        click.echo(f"error: {printable(error)}", err=True)
    if report["errors"]:
        ctx.exit(1)
