"""`rootlet explain`."""

from __future__ import annotations

import click

from supervisor.cli.options import Failure


@click.command()
@click.argument("path", metavar="TYPE[.FIELD...]")
@click.option("--recursive", "-R", is_flag=True, help="Show only names and types, of fields within fields, too.")
@click.option("--max-depth", type=click.IntRange(min=0), default=0, help="With --recursive: how deep; 0 is all.")
@click.option("--api-version", default="", metavar="VERSION", help="Version of the kind.")
def explain(path: str, recursive: bool, max_depth: int, api_version: str) -> None:
    """Show the fields of a kind, and what Rootlet does with each.

    \b
    rootlet explain pod.spec.containers
    rootlet explain pods --recursive
    """
    from supervisor.cli.printers.fields import UnknownField, explained

    try:
        click.echo(explained(path, api_version, recursive=recursive, max_depth=max_depth), nl=False)
    except UnknownField as error:
        raise Failure(str(error), prefix="error: ") from None
