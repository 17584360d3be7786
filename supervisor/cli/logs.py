"""`rootlet logs`."""

from __future__ import annotations

import math
import sys

import click

from supervisor.cli.options import agent, agent_options, duration_s, namespace_option, split_pod_name
from supervisor.client import AgentClient, pod_path

_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


@click.command()
@click.argument("pod", metavar="POD")
@click.argument("container_argument", metavar="[CONTAINER]", default="")
@click.option("-c", "--container", default="", help="Which container of the pod.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the container ends.")
@click.option("-p", "--previous", is_flag=True, help="The log of the container's life before the present one.")
@click.option("--tail", type=click.IntRange(min=-1), default=-1, help="Only the last so many lines; -1 is all.")
@click.option("--since", callback=duration_s, help="Only what is not older than this: 10s, 5m, 2h.")
@click.option("--since-time", default=None, help="Only what is not older than this RFC 3339 time.")
@click.option("--limit-bytes", type=click.IntRange(min=1), help="Stop after so many bytes.")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@namespace_option
@agent_options
@click.pass_context
def logs(
    ctx: click.Context,
    pod: str,
    container_argument: str,
    container: str,
    follow: bool,
    previous: bool,
    tail: int,
    since: float | None,
    since_time: str | None,
    limit_bytes: int | None,
    timestamps: bool,
    namespace: str,
) -> None:
    """Print the log of a container."""
    name = split_pod_name(pod)
    with agent(ctx) as client:
        query = {
            "container": container or container_argument or _choose_container(client, namespace, name) or None,
            "follow": follow or None,
            "previous": previous or None,
            "timestamps": timestamps or None,
            "tailLines": None if tail == -1 else tail,
            "sinceSeconds": None if since is None else max(1, math.ceil(since)),
            "sinceTime": since_time,
            "limitBytes": limit_bytes,
        }
        for piece in client.stream_log(namespace, name, query):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _choose_container(client: AgentClient, namespace: str, name: str) -> str:
    """The annotated one, else the first, which is said on stderr (polymorphichelpers, logsForObject)."""
    pod = client.get(pod_path(namespace, name))
    containers = [c["name"] for c in pod["spec"]["containers"]]
    others = [c["name"] for kind in ("initContainers", "ephemeralContainers") for c in pod["spec"].get(kind, ())]
    annotated = str(pod["metadata"].get("annotations", {}).get(_DEFAULT_CONTAINER, ""))
    if annotated in containers:
        return annotated
    if len(containers) + len(others) > 1:
        shown = ", ".join([*containers, *(f"{other} (init)" for other in others)])
        click.echo(f'Defaulted container "{containers[0]}" out of: {shown}', err=True)
    return str(containers[0])
