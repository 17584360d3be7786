"""`rootlet describe pod`, `configmap` and `secret`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ipc.host import clock
from supervisor.cli.config_objects import OBJECT_ALIASES
from supervisor.cli.options import POD_ALIASES, agent, agent_options, namespace_option, split_pod_name
from supervisor.cli.printers.config_objects import describe_config_object
from supervisor.cli.printers.describe import describe_pod
from supervisor.cli.printers.staleness import warn_if_stale
from supervisor.client.http import AgentClient, config_object_path, details_path, events_path, pod_path


@click.command()
@click.argument("resource", metavar="pod|configmap|secret")
@click.argument("names", nargs=-1, metavar="NAME...")
@namespace_option
@agent_options
@click.pass_context
def describe(ctx: click.Context, resource: str, names: tuple[str, ...], namespace: str) -> None:
    """Show everything about a pod: its containers, conditions and events, what the agent did last and waits for.

    Of a ConfigMap or Secret: its keys and their sizes, no values.
    """
    kind, slash, name = resource.partition("/")
    if slash and kind in OBJECT_ALIASES:
        resource, names = kind, (name, *names)
    elif slash:
        names = (resource, *names)
    elif resource not in POD_ALIASES and resource not in OBJECT_ALIASES:
        raise click.UsageError(f'"{resource}" cannot be described, only pods, configmaps and secrets')
    if not names:
        raise click.UsageError(f"name the {resource} to describe")
    with agent(ctx) as client:
        if resource in OBJECT_ALIASES:
            _describe_objects(client, OBJECT_ALIASES[resource], names, namespace)
        else:
            _describe_pods(client, [split_pod_name(name) for name in names], namespace)


def _describe_pods(client: AgentClient, names: Sequence[str], namespace: str) -> None:
    warn_if_stale(client)
    for index, name in enumerate(names):
        pod = client.get(pod_path(namespace, name))
        details = client.get(details_path(namespace, name))
        about = f"involvedObject.kind=Pod,involvedObject.uid={pod['metadata']['uid']}"
        events = client.get(events_path(namespace), {"fieldSelector": about})["items"]
        _echo(index, describe_pod(pod, details, events, clock.wall()))


def _describe_objects(client: AgentClient, resource: str, names: Sequence[str], namespace: str) -> None:
    for index, name in enumerate(names):
        found = client.get(config_object_path(resource, namespace, name.rpartition("/")[2]))
        _echo(index, describe_config_object(found, clock.wall()))


def _echo(index: int, text: str) -> None:
    click.echo(("\n\n" if index else "") + text, nl=False)
