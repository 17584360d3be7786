"""`rootlet annotate`."""

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
def annotate(ctx: click.Context, /, words: tuple[str, ...], **options: object) -> None:
    """Change annotations of applied objects. KEY- takes one away.

    \b
    rootlet annotate pod web note='of the shop'
    rootlet annotate pods web db note-
    """
    change_metadata(ctx, "annotations", words, options)
