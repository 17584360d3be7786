"""`rootlet describe pod`."""

from __future__ import annotations

import click

from ipc import clock
from supervisor.cli.options import POD_ALIASES, agent, agent_options, namespace_option, split_pod_name
from supervisor.cli.printers.describe import describe_pod
from supervisor.cli.staleness import warn_if_stale
from supervisor.client import details_path, events_path, pod_path


@click.command()
@click.argument("resource", metavar="pod")
@click.argument("names", nargs=-1, metavar="NAME...")
@namespace_option
@agent_options
@click.pass_context
def describe(ctx: click.Context, resource: str, names: tuple[str, ...], namespace: str) -> None:
    """Show everything about a pod: its containers, conditions and events, what the agent did last and waits for."""
    if "/" in resource:
        names = (resource, *names)
    elif resource not in POD_ALIASES:
        raise click.UsageError(f'"{resource}" cannot be described, only pods')
    if not names:
        raise click.UsageError("name the pod to describe")
    wanted = [split_pod_name(name) for name in names]
    with agent(ctx) as client:
        warn_if_stale(client)
        for index, name in enumerate(wanted):
            pod = client.get(pod_path(namespace, name))
            details = client.get(details_path(namespace, name))
            about = f"involvedObject.kind=Pod,involvedObject.uid={pod['metadata']['uid']}"
            events = client.get(events_path(namespace), {"fieldSelector": about})["items"]
            separator = "\n\n" if index else ""
            click.echo(separator + describe_pod(pod, details, events, clock.wall()), nl=False)
