"""`rootlet describe` (kubectl pkg/cmd/describe)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import click

from ipc.host import clock
from ipc.host.text.json_types import Json
from ipc.k8s.resources import registry
from supervisor.cli.arguments import Selection, select
from supervisor.cli.describe.config_objects import (
    describe_config_object,
    describe_priority_class,
    describe_runtime_class,
)
from supervisor.cli.describe.node import describe_node
from supervisor.cli.describe.other_objects import describe_event, describe_namespace, describe_worker
from supervisor.cli.describe.persistent_volumes import describe_claim, describe_volume, pods_that_use
from supervisor.cli.describe.pod import describe_pod
from supervisor.cli.manifests import manifest_options, recursive_option
from supervisor.cli.options import (
    DEFAULT_NAMESPACE,
    Failure,
    agent,
    agent_options,
    place_options,
)
from supervisor.cli.printers.staleness import warn_if_stale
from supervisor.client.errors import RequestFailed
from supervisor.client.http import STATISTICS_PATH, AgentClient, details_path, events_path, pods_path

PATIENCE_S: Final = 2
"""How long is waited for statistics, in seconds: the first ones after a while take one."""
_NOT_FOUND: Final = "NotFound"


@click.command()
@click.argument("words", nargs=-1, metavar="TYPE [NAME...] | TYPE/NAME...")
@manifest_options
@recursive_option
@place_options
@click.option("--show-events/--no-show-events", default=True, help="With the events of each.  [default: show-events]")
@click.option("--chunk-size", type=int, default=500, hidden=True, help="Taken as kubectl's, and not needed.")
@agent_options
@click.pass_context
def describe(
    ctx: click.Context,
    words: tuple[str, ...],
    files: tuple[str, ...],
    recursive: bool,
    namespace: str,
    all_namespaces: bool,
    selector: str,
    show_events: bool,
    chunk_size: int,
) -> None:
    """Show everything about objects.

    \b
    rootlet describe pod web         containers, conditions, events, what the agent did last and waits for
    rootlet describe pods -l app=web all that a label selects; a name may be the beginning of one
    rootlet describe node            resources, conditions, images, what pods have reserved and what is used
    rootlet describe cm/a secret/b   keys and their sizes, no values
    rootlet describe -f web.yaml     what a manifest names
    """
    del chunk_size  # there is nothing that it could change
    if not words and not files:
        message = 'You must specify the type of resource to describe. Use "rootlet api-resources" for a complete list.'
        raise Failure(f"{message}\n\nerror: Required resource not specified.", prefix="")
    selections = select(words, files, None if all_namespaces else namespace, recursive=recursive)
    if selector and any(each.names for each in selections):
        raise Failure("name cannot be provided when a selector is specified", prefix="error: ")
    with agent(ctx) as client:
        if any(each.resource is registry.PODS for each in selections):
            warn_if_stale(client)
        describer = _Describer(client, show_events=show_events)
        errors: list[str] = []
        found = [(each, obj) for each in selections for obj in _objects(client, each, selector, errors)]
        for index, (each, obj) in enumerate(found):
            click.echo(("\n\n" if index else "") + describer.text(each, obj), nl=False)
        if not found and not errors:
            where = "" if all_namespaces or not selections[0].resource.is_namespaced else f" in {namespace} namespace."
            click.echo(f"No resources found{where}", err=True)
        if errors:
            raise Failure("\n".join(errors))


def _objects(client: AgentClient, selection: Selection, selector: str, errors: list[str]) -> Sequence[Json]:
    """Objects that are meant; which are not there is said in ``errors``."""
    if not selection.names:
        return _list(client, selection, selector)
    return [obj for name in selection.names for obj in _named(client, selection, name, errors)]


def _named(client: AgentClient, selection: Selection, name: str, errors: list[str]) -> Sequence[Json]:
    """The one of that name, or those whose name begins so."""
    try:
        return [client.get(selection.resource.object_path(selection.namespace or "", name))]
    except RequestFailed as error:
        if error.reason != _NOT_FOUND:
            raise
        alike = [obj for obj in _list(client, selection, "") if obj["metadata"]["name"].startswith(name)]
        if not alike:
            errors.append(str(error))
        return alike


def _list(client: AgentClient, selection: Selection, selector: str) -> Sequence[Json]:
    query = {"labelSelector": selector or None}
    found: Sequence[Json] = client.get(selection.resource.list_path(selection.namespace), query)["items"]
    return found


class _Describer:
    """Descriptions of objects, with what must be asked for them once."""

    def __init__(self, client: AgentClient, *, show_events: bool) -> None:
        self._client = client
        self._show_events = show_events
        self._snapshot: Json | None = None

    def text(self, selection: Selection, obj: Json) -> str:
        """Everything about one object."""
        return self._TEXTS[selection.resource.plural](self, obj)

    def _pod(self, pod: Json) -> str:
        meta = pod["metadata"]
        samples = {sample["uid"]: sample for sample in self._statistics().get("pods", ())}
        details = self._client.get(details_path(meta["namespace"], meta["name"]))
        about = f"involvedObject.kind=Pod,involvedObject.uid={meta['uid']}"
        events = self._client.get(events_path(meta["namespace"]), {"fieldSelector": about})["items"]
        shown = events if self._show_events else None
        return describe_pod(pod, details, shown, clock.wall(), samples.get(meta["uid"], {}))

    def _node(self, node: Json) -> str:
        pods = self._client.get(pods_path(None))["items"]
        usage = self._statistics().get("node", {})
        return describe_node(node, pods, usage, self._events(node), clock.wall())

    def _statistics(self) -> Json:
        """The newest statistics; empty when there are none: a description is worth more than its figures."""
        if self._snapshot is None:
            try:
                self._snapshot = self._client.get(STATISTICS_PATH, {"timeoutSeconds": PATIENCE_S})
            except RequestFailed:
                self._snapshot = {}
        return self._snapshot

    def _volume(self, volume: Json) -> str:
        return describe_volume(volume, self._events(volume), clock.wall())

    def _claim(self, found: Json) -> str:
        meta = found["metadata"]
        users = pods_that_use(meta["name"], self._client.get(pods_path(meta["namespace"]))["items"])
        return describe_claim(found, users, self._events(found), clock.wall())

    def _events(self, obj: Json) -> Sequence[Json] | None:
        """Events about the object; None when none are wanted."""
        return self._events_of(obj) if self._show_events else None

    def _events_of(self, obj: Json) -> Sequence[Json]:
        """Events of what is in no namespace are in the default one."""
        meta = obj["metadata"]
        about = f"involvedObject.kind={obj['kind']},involvedObject.name={meta['name']}"
        path = events_path(meta.get("namespace") or DEFAULT_NAMESPACE)
        found: Sequence[Json] = self._client.get(path, {"fieldSelector": about})["items"]
        return found

    _TEXTS: Final[Mapping[str, Callable[[_Describer, Json], str]]] = {
        registry.PODS.plural: _pod,
        registry.NODES.plural: _node,
        registry.CONFIG_MAPS.plural: lambda self, obj: describe_config_object(obj, clock.wall()),
        registry.SECRETS.plural: lambda self, obj: describe_config_object(obj, clock.wall()),
        registry.PRIORITY_CLASSES.plural: lambda self, obj: describe_priority_class(obj),
        registry.RUNTIME_CLASSES.plural: lambda self, obj: describe_runtime_class(obj),
        registry.PERSISTENT_VOLUMES.plural: _volume,
        registry.PERSISTENT_VOLUME_CLAIMS.plural: _claim,
        registry.EVENTS.plural: lambda self, obj: describe_event(obj),
        registry.NAMESPACES.plural: lambda self, obj: describe_namespace(obj),
        registry.WORKERS.plural: lambda self, obj: describe_worker(obj),
    }
