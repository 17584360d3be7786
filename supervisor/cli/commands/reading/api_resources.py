"""`rootlet api-resources`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from ipc.k8s.resources.registry import RESOURCES
from ipc.k8s.resources.resource import Resource
from supervisor.cli.options import agent_options
from supervisor.cli.printers.tables import TablePrinter

_HEADER: Final = ("NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND")


@click.command("api-resources")
@click.option("--namespaced", type=bool, default=None, help="Only kinds whose objects have a namespace, or have none.")
@click.option("--categories", default="", metavar="NAMES", help="Only kinds of these categories.")
@click.option("--api-group", default=None, help="Only kinds of this group; empty is the core group.")
@click.option("--sort-by", type=click.Choice(["", "name", "kind"]), default="", help="Order of the lines.")
@click.option("--no-headers", is_flag=True, help="Leave the table's header out.")
@click.option(
    "-o", "--output", type=click.Choice(["", "name", "wide"]), default="", metavar="FORMAT", help="wide or name."
)
@agent_options
def api_resources(
    namespaced: bool | None,
    categories: str,
    api_group: str | None,
    sort_by: str,
    no_headers: bool,
    output: str,
) -> None:
    """Show the kinds of objects that there are, and their short names."""
    wanted = [
        each
        for each in RESOURCES
        if (namespaced is None or each.is_namespaced is namespaced)
        and (api_group is None or _group(each) == api_group)
        and set(categories.split(",") if categories else ()) <= set(each.categories)
    ]
    if sort_by:
        wanted.sort(key=lambda each: each.plural if sort_by == "name" else each.kind)
    if output == "name":
        names = (f"{each.plural}.{_group(each)}" if _group(each) else each.plural for each in wanted)
        click.echo("".join(f"{name}\n" for name in names), nl=False)
        return
    header = (*_HEADER, "CATEGORIES") if output == "wide" else _HEADER
    table = TablePrinter(header, show_header=not no_headers)
    click.echo(table.format([_row(each, wide=output == "wide") for each in wanted]), nl=False)


def _group(resource: Resource) -> str:
    group, slash, _ = resource.api_version.partition("/")
    return group if slash else ""


def _row(resource: Resource, *, wide: bool) -> Sequence[str]:
    row = (
        resource.plural,
        ",".join(resource.short_names),
        resource.api_version,
        str(resource.is_namespaced).lower(),
        resource.kind,
    )
    return (*row, ",".join(resource.categories)) if wide else row
