"""`rootlet describe pod`, `node`, `configmap`, `secret` and `priorityclass`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from ipc.host import clock
from supervisor.cli.config_objects import OBJECT_ALIASES, PRIORITY_CLASSES
from supervisor.cli.options import (
    NODE_ALIASES,
    POD_ALIASES,
    Failure,
    agent,
    agent_options,
    namespace_option,
    split_pod_name,
)
from supervisor.cli.printers.config_objects import describe_config_object, describe_priority_class
from supervisor.cli.printers.describe import describe_pod
from supervisor.cli.printers.nodes import describe_node
from supervisor.cli.printers.staleness import warn_if_stale
from supervisor.client.errors import RequestFailed
from supervisor.client.http import (
    NODES_PATH,
    STATISTICS_PATH,
    AgentClient,
    config_object_path,
    details_path,
    events_path,
    pod_path,
    pods_path,
)

PATIENCE_S: Final = 2
"""How long is waited for statistics, in seconds: the first ones after a while take one."""


@click.command()
@click.argument("resource", metavar="pod|node|configmap|secret|priorityclass")
@click.argument("names", nargs=-1, metavar="NAME...")
@namespace_option
@agent_options
@click.pass_context
def describe(ctx: click.Context, resource: str, names: tuple[str, ...], namespace: str) -> None:
    """Show everything about a pod: its containers, conditions and events, what the agent did last and waits for.

    Of the node: its resources, conditions and images, what pods have reserved and what is used. Of a ConfigMap or
    Secret: its keys and their sizes, no values.
    """
    kind, slash, name = resource.partition("/")
    if slash and (kind in OBJECT_ALIASES or kind in NODE_ALIASES):
        resource, names = kind, (name, *names)
    elif slash:
        names = (resource, *names)
    elif not any(resource in known for known in (POD_ALIASES, NODE_ALIASES, OBJECT_ALIASES)):
        known = "only pods, the node, configmaps, secrets and priorityclasses"
        raise click.UsageError(f'"{resource}" cannot be described, {known}')
    if not names and resource not in NODE_ALIASES:
        raise click.UsageError(f"name the {resource} to describe")
    with agent(ctx) as client:
        if resource in NODE_ALIASES:
            _describe_nodes(client, names)
        elif resource in OBJECT_ALIASES:
            _describe_objects(client, OBJECT_ALIASES[resource], names, namespace)
        else:
            _describe_pods(client, [split_pod_name(name) for name in names], namespace)


def _describe_nodes(client: AgentClient, names: Sequence[str]) -> None:
    """The one node that there is, when it is named or nothing is."""
    nodes = client.get(NODES_PATH)["items"]
    if unknown := set(names) - {node["metadata"]["name"] for node in nodes}:
        raise Failure(f'Error from server (NotFound): nodes "{", ".join(sorted(unknown))}" not found')
    pods, snapshot = client.get(pods_path(None))["items"], _snapshot(client)
    for index, node in enumerate(nodes):
        _echo(index, describe_node(node, pods, snapshot.get("node", {}), clock.wall()))


def _snapshot(client: AgentClient) -> dict[str, Any]:
    """The newest statistics; empty when there are none: a description is worth more than its figures."""
    try:
        return client.get(STATISTICS_PATH, {"timeoutSeconds": PATIENCE_S})
    except RequestFailed:
        return {}


def _describe_pods(client: AgentClient, names: Sequence[str], namespace: str) -> None:
    warn_if_stale(client)
    samples: dict[str, Any] | None = None
    for index, name in enumerate(names):
        pod = client.get(pod_path(namespace, name))
        if samples is None:
            samples = {sample["uid"]: sample for sample in _snapshot(client).get("pods", ())}
        details = client.get(details_path(namespace, name))
        about = f"involvedObject.kind=Pod,involvedObject.uid={pod['metadata']['uid']}"
        events = client.get(events_path(namespace), {"fieldSelector": about})["items"]
        _echo(index, describe_pod(pod, details, events, clock.wall(), samples.get(pod["metadata"]["uid"], {})))


def _describe_objects(client: AgentClient, resource: str, names: Sequence[str], namespace: str) -> None:
    for index, name in enumerate(names):
        found = client.get(config_object_path(resource, namespace, name.rpartition("/")[2]))
        is_class = resource == PRIORITY_CLASSES
        _echo(index, describe_priority_class(found) if is_class else describe_config_object(found, clock.wall()))


def _echo(index: int, text: str) -> None:
    click.echo(("\n\n" if index else "") + text, nl=False)
