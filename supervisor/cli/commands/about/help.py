"""`rootlet help`."""

from __future__ import annotations

import click


@click.command()
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, or the list of commands.

    \b
    rootlet help logs
    rootlet help workers restart
    """
    assert ctx.parent is not None, "it is a command of the group"
    context = ctx.parent
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            raise click.UsageError(f"No such command {word!r}.", context)
        context = click.Context(found, info_name=word, parent=context)
    click.echo(context.get_help())
