"""`rootlet label`."""

from __future__ import annotations

import click

from supervisor.cli.changing.metadata import change_metadata, metadata_options


@click.command()
@metadata_options
@click.pass_context
def label(ctx: click.Context, /, words: tuple[str, ...], **options: object) -> None:
    """Change labels of applied objects. KEY- takes one away.

    \b
    rootlet label pod web tier=front
    rootlet label pods --all tier-
    rootlet label --overwrite pod/web tier=back
    """
    change_metadata(ctx, "labels", words, options)
