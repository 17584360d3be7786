"""`rootlet images`: Podman's images as image garbage collection sees them."""

from __future__ import annotations

import click

from ipc.host import clock
from supervisor.cli.options import agent, agent_options
from supervisor.cli.printers.documents import DOCUMENTS
from supervisor.cli.printers.garbage import HEADER, image_rows, is_unused
from supervisor.cli.printers.tables import TablePrinter, printable


@click.command()
@click.option("--unused", is_flag=True, help="Only images that no container and no wanted pod uses.")
@click.option("-o", "--output", type=click.Choice([*DOCUMENTS]), help="Instead of a table.")
@agent_options
@click.pass_context
def images(ctx: click.Context, unused: bool, output: str | None) -> None:
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
    if output:
        click.echo(DOCUMENTS[output]({"images": found}), nl=False)
    elif found:
        now = clock.wall()
        rows = (row for image in found for row in image_rows(image, now))
        click.echo(TablePrinter(HEADER).format(rows), nl=False)
    for error in report["errors"]:
        click.echo(f"error: {printable(error)}", err=True)
    if report["errors"]:
        ctx.exit(1)
