"""`rootlet explain`."""

from __future__ import annotations

import click

from supervisor.cli.options import Failure


def _fields(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Kinds, and fields below the one that is typed up to its last dot."""
    from supervisor.cli.printers.fields import UnknownField, field_names, kinds

    above, dot, _last = incomplete.rpartition(".")
    try:
        found = [f"{above}.{name}" for name in field_names(above)] if dot else kinds()
    except UnknownField:
        return []
    return [word for word in found if word.startswith(incomplete)]


@click.command()
@click.argument("path", metavar="TYPE[.FIELD...]", shell_complete=_fields)
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
