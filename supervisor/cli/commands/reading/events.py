"""`rootlet events` (kubectl pkg/cmd/events)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

import click

from ipc.host import clock
from ipc.host.clock import rfc3339
from ipc.host.text.json_types import Json
from ipc.k8s.resources.registry import EVENTS
from supervisor.cli.arguments import select
from supervisor.cli.options import (
    Failure,
    agent,
    agent_options,
    all_namespaces_option,
    document_option,
    duration_s,
    namespace_option,
)
from supervisor.cli.printers.documents import DOCUMENTS, as_list
from supervisor.cli.printers.events import HEADER, by_time, event_row
from supervisor.cli.printers.tables import TablePrinter
from supervisor.client.http import AgentClient, Query
from supervisor.client.reflector import Reflector

TYPES: Final = ("Normal", "Warning")


@click.group(invoke_without_command=True)
@click.option("--for", "about", default="", metavar="TYPE/NAME", help="Events of one object: pod/web.")
@click.option("--types", multiple=True, metavar="TYPE[,TYPE]", help="Only Normal or Warning ones.")
@click.option("-w", "--watch", is_flag=True, help="Go on with what happens.")
@document_option(metavar="FORMAT")
@click.option("--no-headers", is_flag=True, help="Leave the table's header out.")
@click.option("--chunk-size", type=int, default=500, hidden=True, help="Taken as kubectl's, and not needed.")
@namespace_option
@all_namespaces_option
@agent_options
@click.pass_context
def events(
    ctx: click.Context,
    about: str,
    types: tuple[str, ...],
    watch: bool,
    output: str,
    no_headers: bool,
    chunk_size: int,
    namespace: str,
    all_namespaces: bool,
) -> None:
    """Show what has happened, in the order of time.

    \b
    rootlet events --for pod/web
    rootlet events --types=Warning -A -w
    rootlet events export --since 2h > events.jsonl
    """
    del chunk_size  # there is nothing that it could change
    if ctx.invoked_subcommand is not None:
        return
    wanted = frozenset(_checked(name) for names in types for name in names.split(","))
    query: Query = {"fieldSelector": _selector(about, namespace) if about else None}
    shown = _Shown(wanted, output, with_namespace=all_namespaces, headers=not no_headers)
    with agent(ctx) as client:
        path = EVENTS.list_path(None if all_namespaces else namespace)
        if watch:
            _follow(client, path, query, shown)
            return
        found = shown.of_types(client.get(path, query)["items"])
        if found or output:
            click.echo(shown.text(found), nl=False)
        else:
            click.echo(f"No events found{'' if all_namespaces else f' in {namespace} namespace'}.", err=True)


@events.command()
@document_option(metavar="FORMAT", words="json, yaml or kyaml, not lines.")
@click.option("--since", callback=duration_s, help="Only what was last seen within this time: 30m, 2h.")
@agent_options
@click.pass_context
def export(ctx: click.Context, output: str, since: float | None) -> None:
    """Print every event that the agent still has, of all namespaces, oldest first: for a ticket, or another program.

    Each is a line of JSON, unless -o makes them one document.
    """
    if since is not None and since < 0:
        raise Failure("--since must be greater than 0", prefix="error: ")
    oldest = rfc3339(clock.wall() - since) if since else ""
    with agent(ctx) as client:
        found = sorted(client.get(EVENTS.list_path(None))["items"], key=by_time)
    kept = [event for event in found if by_time(event)[0] >= oldest]
    lines = (json.dumps(event, sort_keys=True) + "\n" for event in kept)
    click.echo(DOCUMENTS[output](as_list(kept)) if output else "".join(lines), nl=False)


def _checked(name: str) -> str:
    found = next((known for known in TYPES if known.lower() == name.strip().lower()), None)
    if found is None:
        raise Failure("valid --types are Normal or Warning", prefix="error: ")
    return found


def _selector(about: str, namespace: str) -> str:
    """Raises Failure."""
    if "/" not in about:
        raise Failure("--for must be in resource/name form", prefix="error: ")
    (selection,) = select([about], (), namespace)
    return f"involvedObject.kind={selection.resource.kind},involvedObject.name={selection.names[0]}"


def _follow(client: AgentClient, path: str, query: Query, shown: _Shown) -> None:
    """Everything there is, then what happens, each time it does."""
    reflector = Reflector(client, path, query)
    click.echo(shown.each(shown.of_types([event.object for event in reflector.list()])), nl=False)
    for event in reflector.events():
        if event.type in ("ADDED", "MODIFIED"):
            click.echo(shown.each(shown.of_types([event.object])), nl=False)


class _Shown:
    """Text of events; later rows line up with earlier ones."""

    def __init__(self, types: frozenset[str], output: str, *, with_namespace: bool, headers: bool) -> None:
        self._types = types
        self._document = DOCUMENTS[output] if output else None
        self._separator = "---\n" if output == "yaml" else ""
        self._with_namespace = with_namespace
        self._table = TablePrinter(("NAMESPACE", *HEADER) if with_namespace else HEADER, show_header=headers)

    def of_types(self, found: Sequence[Json]) -> list[Json]:
        """Leave out other types, and put the rest in the order of time."""
        return sorted((each for each in found if not self._types or each.get("type") in self._types), key=by_time)

    def text(self, found: Sequence[Json]) -> str:
        """Text of all events at once."""
        return self._table.format(self._rows(found)) if self._document is None else self._document(as_list(found))

    def each(self, found: Sequence[Json]) -> str:
        """One after the other."""
        if self._document is None:
            return self._table.format(self._rows(found)) if found else ""
        return "".join(self._separator + self._document(event) for event in found)

    def _rows(self, found: Sequence[Json]) -> Iterator[Sequence[str]]:
        now = clock.wall()
        for event in found:
            row = event_row(event, now)
            yield (event["metadata"].get("namespace", ""), *row) if self._with_namespace else row
