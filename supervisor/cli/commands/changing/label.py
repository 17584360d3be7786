"""`rootlet label`."""

from __future__ import annotations

import click

from supervisor.cli.changing.changes import choice_options, dry_run_option, output_option
from supervisor.cli.changing.metadata import change_metadata, metadata_options
from supervisor.cli.options import agent_options


@click.command()
@click.argument("words", nargs=-1, metavar="(TYPE NAME | TYPE/NAME)... KEY=VALUE... KEY-...")
@choice_options
@metadata_options
@dry_run_option
@output_option
@agent_options
@click.pass_context
def label(ctx: click.Context, /, words: tuple[str, ...], **options: object) -> None:
    """Change labels of applied objects. KEY- takes one away.

    \b
    rootlet label pod web tier=front
    rootlet label pods --all tier-
    rootlet label --overwrite pod/web tier=back
    """
    change_metadata(ctx, "labels", words, options)
