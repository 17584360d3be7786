"""`rootlet logs`."""

from __future__ import annotations

import math
from typing import Final

import click

from supervisor.cli.options import (
    Failure,
    agent,
    agent_options,
    container_option,
    duration_s,
    namespace_option,
    split_pod_name,
)
from supervisor.cli.printers.containers import container_names, default_container
from supervisor.cli.streams.log_streams import LogStream, print_streams
from supervisor.client.http import Query, pod_path

MAX_LOG_REQUESTS: Final = 5
"""Logs that are followed at a time, unless said otherwise (kubectl logs.go, MaxFollowConcurrency)."""
_PRINTED: Final = ("initContainers", "containers", "ephemeralContainers")
"""In which order --all-containers prints them."""


@click.command()
@click.argument("pod", metavar="POD")
@click.argument("container_argument", metavar="[CONTAINER]", default="")
@container_option
@click.option("--all-containers", is_flag=True, help="All of them: init containers first, ephemeral ones last.")
@click.option("--prefix", is_flag=True, help="Begin each line with pod and container.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the container ends.")
@click.option(
    "--max-log-requests",
    type=click.IntRange(min=1),
    default=MAX_LOG_REQUESTS,
    show_default=True,
    help="Most containers to follow at a time.",
)
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
    all_containers: bool,
    prefix: bool,
    follow: bool,
    max_log_requests: int,
    previous: bool,
    tail: int,
    since: float | None,
    since_time: str | None,
    limit_bytes: int | None,
    timestamps: bool,
    namespace: str,
) -> None:
    """Print the log of a container, or of all containers of a pod.

    \b
    rootlet logs web                      the first container, or the one that an annotation names
    rootlet logs web -c init -p           the life before the present one of any container
    rootlet logs web --all-containers -f  all of them as they come
    """
    if container and container_argument:
        raise click.UsageError("only one of -c or an inline [CONTAINER] arg is allowed")
    chosen = container or container_argument
    if chosen and all_containers:
        raise click.UsageError(f"--all-containers should not be specified with container name {chosen}")
    name = split_pod_name(pod)
    options: Query = {
        "follow": follow or None,
        "previous": previous or None,
        "timestamps": timestamps or None,
        "tailLines": None if tail == -1 else tail,
        "sinceSeconds": None if since is None else max(1, math.ceil(since)),
        "sinceTime": since_time,
        "limitBytes": limit_bytes,
    }
    with agent(ctx) as client:
        found = {} if chosen else client.get(pod_path(namespace, name))
        names = container_names(found, *_PRINTED) if all_containers else [chosen or default_container(found)]
        if follow and len(names) > max_log_requests:
            raise Failure(
                f"you are attempting to follow {len(names)} log streams, but maximum allowed concurrency is"
                f" {max_log_requests}, use --max-log-requests to increase the limit",
                prefix="error: ",
            )
        streams = [
            LogStream(
                pieces=client.stream_log(namespace, name, {**options, "container": each}),
                prefix=f"[pod/{name}/{each}] ".encode() if prefix else b"",
            )
            for each in names
        ]
        print_streams(streams, together=follow and len(streams) > 1)
