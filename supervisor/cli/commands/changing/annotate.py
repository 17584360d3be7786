"""`rootlet annotate`."""

from __future__ import annotations

import click

from supervisor.cli.changing.metadata import change_metadata, metadata_options


@click.command()
@metadata_options
@click.pass_context
def annotate(ctx: click.Context, /, words: tuple[str, ...], **options: object) -> None:
    """Change annotations of applied objects. KEY- takes one away.

    \b
    rootlet annotate pod web note='of the shop'
    rootlet annotate pods web db note-
    """
    change_metadata(ctx, "annotations", words, options)
