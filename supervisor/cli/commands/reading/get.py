"""`rootlet get`: tables and documents of pods, events, objects beside pods and workers, and of what happens to them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from ipc.host import clock
from supervisor.cli.config_objects import CONFIG_MAPS, OBJECT_ALIASES, PRIORITY_CLASSES, SECRETS, SINGULAR
from supervisor.cli.options import (
    NODE_ALIASES,
    POD_ALIASES,
    Failure,
    agent,
    agent_options,
    all_namespaces_option,
    namespace_option,
    selector_option,
    split_pod_name,
)
from supervisor.cli.printers import config_objects, events, nodes, pods, workers
from supervisor.cli.printers.documents import DOCUMENTS, as_list
from supervisor.cli.printers.staleness import warn_if_stale
from supervisor.cli.printers.tables import TablePrinter
from supervisor.client.errors import RequestFailed
from supervisor.client.http import (
    NODES_PATH,
    AgentClient,
    Query,
    config_object_path,
    config_objects_path,
    events_path,
    pod_path,
    pods_path,
)
from supervisor.client.reflector import Reflector

WORKERS_PERIOD_S: Final = 1.0
"""How often `get workers -w` looks: rows change with every heartbeat, so there is nothing to be told of."""

Json = Mapping[str, Any]


class Kind(msgspec.Struct, frozen=True):
    """How one kind of object is asked for and shown as a table."""

    name: str
    """Singular, for ``-o name``."""
    path: Callable[[str | None], str]
    header: Sequence[str]
    wide_header: Sequence[str]
    row: Callable[[Json, float, bool], Sequence[str]]
    one: Callable[[str, str], str] | None = None
    """The URL of one by namespace and name, where there is such."""
    is_namespaced: bool = True


_POD: Final = Kind(
    "pod",
    pods_path,
    pods.HEADER,
    pods.WIDE_HEADER,
    lambda pod, now, wide: pods.pod_row(pod, now, wide=wide),
    pod_path,
)
_EVENT: Final = Kind(
    "event",
    events_path,
    events.HEADER,
    events.WIDE_HEADER,
    lambda event, now, wide: events.event_row(event, now, wide=wide),
)
_NODE: Final = Kind(
    "node",
    lambda namespace: NODES_PATH,
    nodes.HEADER,
    nodes.WIDE_HEADER,
    lambda node, now, wide: nodes.node_row(node, now, wide=wide),
    lambda namespace, name: f"{NODES_PATH}/{name}",
    is_namespaced=False,
)
_CONFIG_MAP: Final = Kind(
    SINGULAR[CONFIG_MAPS],
    functools.partial(config_objects_path, CONFIG_MAPS),
    config_objects.CONFIG_MAP_HEADER,
    config_objects.WIDE_CONFIG_MAP_HEADER,
    lambda found, now, wide: config_objects.config_map_row(found, now, wide=wide),
    functools.partial(config_object_path, CONFIG_MAPS),
)
_SECRET: Final = Kind(
    SINGULAR[SECRETS],
    functools.partial(config_objects_path, SECRETS),
    config_objects.SECRET_HEADER,
    config_objects.WIDE_SECRET_HEADER,
    lambda found, now, wide: config_objects.secret_row(found, now, wide=wide),
    functools.partial(config_object_path, SECRETS),
)
_PRIORITY_CLASS: Final = Kind(
    SINGULAR[PRIORITY_CLASSES],
    functools.partial(config_objects_path, PRIORITY_CLASSES),
    config_objects.PRIORITY_CLASS_HEADER,
    config_objects.PRIORITY_CLASS_HEADER,
    lambda found, now, wide: config_objects.priority_class_row(found, now),
    functools.partial(config_object_path, PRIORITY_CLASSES),
    is_namespaced=False,
)
_KINDS: Final[Mapping[str, Kind]] = {
    "pods": _POD,
    "nodes": _NODE,
    "events": _EVENT,
    CONFIG_MAPS: _CONFIG_MAP,
    SECRETS: _SECRET,
    PRIORITY_CLASSES: _PRIORITY_CLASS,
}
_ALIASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(POD_ALIASES, "pods"),
    **dict.fromkeys(NODE_ALIASES, "nodes"),
    **dict.fromkeys(("event", "events", "ev"), "events"),
    **OBJECT_ALIASES,
    **dict.fromkeys(("worker", "workers"), "workers"),
}
_TABLES: Final = ("", "wide")


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Selection of the objects to show, and the form of the output."""

    kind: Kind
    namespace: str | None
    """None is all of them."""
    names: tuple[str, ...]
    selector: str
    output: str
    headers: bool


@click.command()
@click.argument("resource", metavar="pods|nodes|events|configmaps|secrets|priorityclasses|workers")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@namespace_option
@all_namespaces_option
@selector_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["", "wide", "json", "yaml", "name"]),
    default="",
    metavar="FORMAT",
    help="wide, json, yaml or name instead of a table.",
)
@click.option("-w", "--watch", is_flag=True, help="Go on with what changes.")
@click.option("--no-headers", is_flag=True, help="Leave the table's header out.")
@agent_options
@click.pass_context
def get(
    ctx: click.Context,
    resource: str,
    names: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    selector: str,
    output: str,
    watch: bool,
    no_headers: bool,
) -> None:
    """Show pods, the node, events, objects beside pods, or workers. Of ConfigMaps and Secrets nobody is told values.

    \b
    rootlet get pods                  the pods of the namespace "default"
    rootlet get pods -A -o wide       all pods with address and node
    rootlet get pod web -o yaml       one pod as a document
    rootlet get events -w             events as they come
    rootlet get secrets -o wide       Secrets with their sizes
    """
    resource, slash, name = resource.partition("/")
    names = (name, *names) if slash else names
    kind = _ALIASES.get(resource)
    if kind is None:
        known = "only pods, nodes, events, configmaps, secrets, priorityclasses and workers"
        raise click.UsageError(f'there is no resource type "{resource}": {known}')
    with agent(ctx) as client:
        if kind == "workers":
            _get_workers(client, names, output, watch, headers=not no_headers)
            return
        view = View(
            kind=_KINDS[kind],
            namespace=None if all_namespaces and _KINDS[kind].is_namespaced else namespace,
            names=tuple(split_pod_name(n) if kind == "pods" else n for n in names),
            selector=selector,
            output=output,
            headers=not no_headers,
        )
        if kind == "pods" and output in _TABLES:
            warn_if_stale(client)
        (_watch if watch else _list)(client, view)


def _list(client: AgentClient, view: View) -> None:
    found, errors = _find(client, view)
    if view.output in DOCUMENTS:
        single = len(view.names) == 1 and len(found) == 1
        if found or not view.names:
            click.echo(DOCUMENTS[view.output](found[0] if single else as_list(found)), nl=False)
    elif found:
        click.echo(_Rows(view).format(found), nl=False)
    elif not view.names:
        where = "" if view.namespace is None else f" in {view.namespace} namespace"
        click.echo(f"No resources found{where}.", err=True)
    if errors:
        raise Failure("\n".join(errors))


def _find(client: AgentClient, view: View) -> tuple[Sequence[Json], list[str]]:
    """Objects in the order in which they are shown, and what could not be found."""
    if not view.names or view.kind.one is None or view.namespace is None:
        found = client.get(view.kind.path(view.namespace), _query(view))["items"]
        found = [item for item in found if not view.names or item["metadata"]["name"] in view.names]
        return (sorted(found, key=events.by_time) if view.kind is _EVENT else found), []
    objects, errors = [], []
    for name in view.names:
        try:
            objects.append(client.get(view.kind.one(view.namespace, name)))
        except RequestFailed as error:
            errors.append(str(error))
    return objects, errors


def _watch(client: AgentClient, view: View) -> None:
    """Everything there is, then each change as one row or document."""
    reflector = Reflector(client, view.kind.path(view.namespace), _query(view))
    rows = _Rows(view)
    existing = [event.object for event in reflector.list()]
    _show(rows, view, sorted(existing, key=events.by_time) if view.kind is _EVENT else existing)
    for event in reflector.events():
        if event.type != "BOOKMARK":
            _show(rows, view, [event.object])


def _show(rows: _Rows, view: View, objects: Sequence[Json]) -> None:
    shown = [o for o in objects if not view.names or o["metadata"]["name"] in view.names]
    if view.output in DOCUMENTS:
        separator = "---\n" if view.output == "yaml" else ""
        click.echo("".join(separator + DOCUMENTS[view.output](o) for o in shown), nl=False)
    elif shown:
        click.echo(rows.format(shown), nl=False)


def _query(view: View) -> Query:
    single = f"metadata.name={view.names[0]}" if len(view.names) == 1 else None
    return {"labelSelector": view.selector or None, "fieldSelector": single}


class _Rows:
    """Lines of a table, or names; later rows line up with earlier ones."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._wide = view.output == "wide"
        header = view.kind.wide_header if self._wide else view.kind.header
        namespaced = ("NAMESPACE", *header) if view.namespace is None else header
        self._table = TablePrinter(namespaced, show_header=view.headers)

    def format(self, objects: Sequence[Json]) -> str:
        if self._view.output == "name":
            return "".join(f"{self._view.kind.name}/{o['metadata']['name']}\n" for o in objects)
        now = clock.wall()
        return self._table.format([self._row(o, now) for o in objects])

    def _row(self, obj: Json, now: float) -> Sequence[str]:
        row = self._view.kind.row(obj, now, self._wide)
        return (obj["metadata"].get("namespace", ""), *row) if self._view.namespace is None else row


def _get_workers(client: AgentClient, names: tuple[str, ...], output: str, watch: bool, *, headers: bool) -> None:
    wide = output == "wide"
    table = TablePrinter(workers.WIDE_HEADER if wide else workers.HEADER, show_header=headers)
    shown: dict[str, Json] = {}
    while True:
        found = client.get("/rootlet/v1/workers", {"resources": wide or None})
        items = [w for w in found["items"] if not names or w["name"] in names]
        if output in DOCUMENTS:
            click.echo(DOCUMENTS[output]({**found, "items": items}), nl=False)
        elif output == "name":
            click.echo("".join(f"worker/{w['name']}\n" for w in items), nl=False)
        else:
            changed = [w for w in items if shown.get(w["name"]) != _lasting(w)]
            shown = {w["name"]: _lasting(w) for w in items}
            click.echo(table.format([workers.worker_row(w, wide=wide) for w in changed]), nl=False)
        if not watch:
            return
        time.sleep(WORKERS_PERIOD_S)


def _lasting(worker: Json) -> Json:
    """Fields of a worker that make its row be shown again when they differ."""
    return {key: worker[key] for key in ("pid", "incarnation", "state", "pods", "deaths", "breaker", "step")}
