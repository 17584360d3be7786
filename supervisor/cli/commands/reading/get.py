"""`rootlet get`: tables and documents of objects, and of what happens to them (kubectl pkg/cmd/get, get.go)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import click
import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.resources.registry import CONFIG_MAPS, PODS, SECRETS, WORKERS
from ipc.k8s.resources.resource import CORE, Resource
from supervisor.cli.arguments import Selection, are_several_kinds, select
from supervisor.cli.manifests import manifest_options, recursive_option
from supervisor.cli.options import (
    CommandOptions,
    Failure,
    agent,
    agent_options,
    listing_options,
)
from supervisor.cli.output.forms import NAME, Form, Output, form, object_name, parse_output
from supervisor.cli.printers.object_tables import ObjectTable, TableStyle
from supervisor.cli.printers.staleness import warn_if_stale
from supervisor.client.errors import RequestFailed
from supervisor.client.http import AgentClient, Query
from supervisor.client.reflector import Reflector
from supervisor.client.tables import TABLE, columns_in, objects_in

POLL_PERIOD_S: Final = 1.0
"""How often kinds are looked at that cannot be watched, in seconds."""
VALUES_LEFT_OUT: Final = "Warning: values of Secrets are left out: --show-values shows those of Secrets that are named"
NO_TYPE: Final = (
    'You must specify the type of resource to get. Use "rootlet api-resources" for a complete list of supported'
    " resources.\n\nerror: Required resource not specified.\n"
    "See 'rootlet get -h' for help and examples"
)


class ObjectsOfKind(msgspec.Struct, frozen=True):
    """Objects of one kind as the server has answered."""

    resource: Resource
    objects: Sequence[Json]
    columns: Sequence[Json] = ()


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Choice of the objects that are shown, and of their form."""

    selections: tuple[Selection, ...]
    labels: str
    fields: str
    output: Output
    headers: bool
    style: TableStyle
    show_kind: bool
    sort_by: str
    ignore_not_found: bool
    allow_missing_keys: bool
    watch_only: bool
    show_values: bool

    @property
    def is_single(self) -> bool:
        """Whether one object was asked for by its name."""
        return len(self.selections) == 1 and len(self.selections[0].names) == 1

    def query(self, resource: Resource) -> Query:
        """The selectors, and what the rows need."""
        return {
            "labelSelector": self.labels or None,
            "fieldSelector": self.fields or None,
            "includeObject": "Object" if self.sort_by and self.output.is_table else None,
            "resources": (self.output.is_wide and resource is WORKERS) or None,
        }


@click.command()
@click.argument("words", nargs=-1, metavar="[TYPE[,TYPE...] [NAME...] | TYPE/NAME...]")
@listing_options
@manifest_options
@recursive_option
@click.option(
    "-o",
    "--output",
    "output_text",
    default="",
    metavar="FORMAT",
    help="wide, json, yaml, kyaml, name, jsonpath=, jsonpath-as-json=, custom-columns=, or -file= of these.",
)
@click.option("--template", default="", help="What -o jsonpath or custom-columns prints, or its file.")
@click.option("--allow-missing-template-keys/--no-allow-missing-template-keys", default=True, hidden=True)
@click.option("--sort-by", default="", metavar="JSONPATH", help="Order by a field: .metadata.creationTimestamp.")
@click.option("-L", "--label-columns", multiple=True, metavar="LABEL", help="A column with the value of this label.")
@click.option("--show-labels", is_flag=True, help="A column with all labels.")
@click.option("--show-kind", is_flag=True, help="Names with their kind.")
@click.option("-w", "--watch", is_flag=True, help="Go on with what changes.")
@click.option("--watch-only", is_flag=True, help="Only what changes.")
@click.option("--output-watch-events", is_flag=True, help="With what has happened: ADDED, MODIFIED or DELETED.")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@click.option("--no-headers", is_flag=True, help="Leave the table's header out.")
@click.option("--chunk-size", type=int, default=500, hidden=True, help="Taken as kubectl's, and not needed.")
@click.option("--show-managed-fields", is_flag=True, hidden=True, help="Taken as kubectl's: there are none.")
@click.option("--show-values", is_flag=True, help="Documents of Secrets that are named, with their values.")
@click.option("--raw", default="", metavar="URI", help="Print what stands at this URL of the agent.")
@agent_options
@click.pass_context
def get(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    files: tuple[str, ...],
    recursive: bool,
    watch: bool,
    watch_only: bool,
    raw: str,
    **options: object,
) -> None:
    """Show pods, the node, events, objects beside pods, namespaces, or the agent's workers.

    \b
    rootlet get pods                      the pods of the namespace "default"
    rootlet get pods -A -o wide           all pods with address, node and ports
    rootlet get pod web -o yaml           one pod as a document
    rootlet get pods,cm                   several kinds
    rootlet get po/web ev/web.17b2        single objects of several kinds
    rootlet get events -w                 events as they come
    rootlet get pods --sort-by .status.startTime
    rootlet get pod web -o jsonpath='{.status.podIP}'
    """
    if raw:
        with agent(ctx) as client:
            click.echo(client.raw(raw), nl=False)
        return
    if not words and not files:
        raise Failure(NO_TYPE, prefix="")
    selections = select(words, files, None if all_namespaces else namespace, recursive=recursive)
    _check(selections, options, is_watch=watch or watch_only)
    view = _view(selections, options, watch_only=watch_only)
    form_of(view)  # a wrong template is told before anything is asked
    has_documents = not (view.output.is_table or view.output.format == NAME)
    if has_documents and not view.show_values and any(each.resource is SECRETS for each in selections):
        click.echo(VALUES_LEFT_OUT, err=True)
    with agent(ctx) as client:
        if view.output.is_table and any(each.resource is PODS for each in selections):
            warn_if_stale(client)
        (_watch if watch or watch_only else _list)(client, view)


def _view(selections: Sequence[Selection], options: CommandOptions, *, watch_only: bool) -> View:
    """Raises Failure for an output that there is not."""
    output, headers = parse_output(options["output_text"], options["template"]), not options["no_headers"]
    return View(
        selections=tuple(selections),
        labels=options["selector"],
        fields=options["field_selector"],
        output=output,
        headers=headers,
        style=TableStyle(
            wide=output.is_wide,
            headers=headers,
            label_columns=tuple(label for labels in options["label_columns"] for label in labels.split(",")),
            show_labels=options["show_labels"],
            show_events=options["output_watch_events"],
        ),
        show_kind=options["show_kind"] or are_several_kinds(selections),
        sort_by=options["sort_by"],
        ignore_not_found=options["ignore_not_found"],
        allow_missing_keys=options["allow_missing_template_keys"],
        watch_only=watch_only,
        show_values=options["show_values"],
    )


def _check(selections: Sequence[Selection], options: CommandOptions, *, is_watch: bool) -> None:
    """Raises Failure for selections that do not go with the other options."""
    if (options["selector"] or options["field_selector"]) and any(each.names for each in selections):
        raise Failure("name cannot be provided when a selector is specified", prefix="error: ")
    if is_watch:
        _refuse_several(selections)
    if options["show_values"] and not all(each.names for each in selections if each.resource is SECRETS):
        raise Failure("name the Secrets whose values are to be shown", prefix="error: ")


def _refuse_several(selections: Sequence[Selection]) -> None:
    if are_several_kinds(selections):
        raise Failure("you may only specify a single resource type", prefix="error: ")
    if len(selections) > 1 or len(selections[0].names) > 1:
        raise Failure(
            "watch is only supported on individual resources and resource collections - more than 1 resource was found",
            prefix="error: ",
        )


# --- once ----------------------------------------------------------------------------------------------------------


def _list(client: AgentClient, view: View) -> None:
    write = form_of(view)
    errors: list[str] = []
    found = [_find(client, view, selection, errors) for selection in view.selections]
    if errors and view.is_single:
        raise Failure(errors[0])
    if write is not None:
        objects = _sorted(view, [obj for each in found for obj in each.objects])
        if objects or not view.is_single:
            click.echo(write(objects, view.is_single), nl=False)
    elif any(each.objects for each in found):
        between = "\n" if view.output.is_table else ""
        click.echo(between.join(filter(None, (_text(view, each) for each in _joined(found)))), nl=False)
    elif not errors and not view.ignore_not_found:
        click.echo(_nothing(view), err=True)
    if errors:
        raise Failure("\n".join(errors))


def form_of(view: View) -> Form | None:
    """How objects are written; None where the server makes the rows, or only names are shown."""
    if view.output.is_table or view.output.format == NAME:
        return None
    return form(view.output, headers=view.headers, allow_missing_keys=view.allow_missing_keys)


def _find(client: AgentClient, view: View, selection: Selection, errors: list[str]) -> ObjectsOfKind:
    """Objects in the order in which they are shown; what could not be found is said in ``errors``."""
    resource, query = _with_values(view, selection.resource)
    accept = TABLE if view.output.is_table else ""
    if not selection.names:
        answer = client.get(resource.list_path(selection.namespace), query, accept)
        return ObjectsOfKind(resource, objects_in(answer), columns_in(answer))
    objects: list[Json] = []
    columns: Sequence[Json] = ()
    for name in selection.names:
        try:
            answer = client.get(resource.object_path(selection.namespace or "", name), query, accept)
        except RequestFailed as error:
            if not (view.ignore_not_found and error.reason == "NotFound"):
                errors.append(str(error))
            continue
        objects += objects_in(answer) if view.output.is_table else [answer]
        columns = columns_in(answer) or columns
    return ObjectsOfKind(resource, objects, columns)


def _with_values(view: View, resource: Resource) -> tuple[Resource, Query]:
    """Where documents of ConfigMaps, and of Secrets that are asked for, are found as they are."""
    query = view.query(resource)
    if view.output.is_table or view.output.format == NAME:
        return resource, query
    if resource is CONFIG_MAPS:
        return msgspec.structs.replace(resource, root=CORE), query
    if resource is SECRETS and view.show_values:
        return msgspec.structs.replace(resource, root=CORE), {**query, "values": True}
    return resource, query


def _joined(found: Iterable[ObjectsOfKind]) -> Iterator[ObjectsOfKind]:
    """Neighbours of one kind in one table."""
    for _, group in groupby(found, key=lambda each: each.resource.plural):
        same = list(group)
        objects = [obj for each in same for obj in each.objects]
        yield ObjectsOfKind(same[0].resource, objects, next((each.columns for each in same if each.columns), ()))


def _text(view: View, found: ObjectsOfKind) -> str:
    """A table, or names."""
    objects = _sorted(view, found.objects)
    if view.output.format == NAME:
        return "".join(f"{object_name(found.resource, obj)}\n" for obj in objects)
    return ObjectTable(found.columns, _style(view, found.resource)).format(objects) if objects else ""


def _style(view: View, resource: Resource) -> TableStyle:
    everywhere = any(each.namespace is None for each in view.selections)
    kind = object_name(resource, {"metadata": {"name": ""}})[:-1] if view.show_kind else ""
    return msgspec.structs.replace(view.style, with_namespace=everywhere and resource.is_namespaced, kind=kind)


def _sorted(view: View, objects: Sequence[Json]) -> Sequence[Json]:
    return _in_order(objects, view.sort_by) if view.sort_by and objects else objects


def _in_order(objects: Sequence[Json], path: str) -> Sequence[Json]:
    from supervisor.cli.output.sorting import sorted_by

    return sorted_by(objects, path)


def _nothing(view: View) -> str:
    places = {each.namespace for each in view.selections}
    namespaced = all(each.resource.is_namespaced for each in view.selections)
    (place,) = places if len(places) == 1 else (None,)
    return f"No resources found in {place} namespace." if namespaced and place is not None else "No resources found"


# --- again and again -----------------------------------------------------------------------------------------------


def _watch(client: AgentClient, view: View) -> None:
    """Everything there is, then each change as one row or document."""
    (selection,) = view.selections
    reflector = _reflector(client, view, selection)
    existing = reflector.list()
    if selection.names and not existing and not view.ignore_not_found:
        raise Failure(f'Error from server (NotFound): {selection.resource.plural} "{selection.names[0]}" not found')
    shown = _Changes(view, selection.resource, reflector.columns)
    if not view.watch_only:
        objects = _sorted(view, [event.object for event in existing])
        shown.show([("ADDED", obj) for obj in objects])
    for type_, obj in _events(reflector, selection.resource):
        shown.show([(type_, obj)])


def _reflector(client: AgentClient, view: View, selection: Selection) -> Reflector:
    query: Query = view.query(selection.resource)
    if selection.names:
        query = {**query, "fieldSelector": f"metadata.name={selection.names[0]}"}
    path = selection.resource.list_path(selection.namespace)
    return Reflector(client, path, query, as_table=view.output.is_table)


def _events(reflector: Reflector, resource: Resource) -> Iterator[tuple[str, Json]]:
    if resource.is_watched:
        yield from ((event.type, event.object) for event in reflector.events() if event.type != "BOOKMARK")
    while True:
        time.sleep(POLL_PERIOD_S)
        yield from ((event.type, event.object) for event in reflector.list())


class _Changes:
    """Text of what happens, as it happens."""

    def __init__(self, view: View, resource: Resource, columns: Sequence[Json]) -> None:
        self._view = view
        self._resource = resource
        self._write = form_of(view)
        self._table = ObjectTable(columns, _style(view, resource))

    def show(self, changes: Iterable[tuple[str, Json]]) -> None:
        """Print these at once."""
        click.echo("".join(self._text(type_, obj) for type_, obj in changes), nl=False)

    def _text(self, type_: str, obj: Json) -> str:
        if self._view.output.format == NAME:
            return f"{object_name(self._resource, obj)}\n"
        if self._write is None:
            return self._table.format([obj], type_)
        document = {"type": type_, "object": obj} if self._view.style.show_events else obj
        separator = "---\n" if self._view.output.format == "yaml" else ""
        return separator + self._write([document], True)
