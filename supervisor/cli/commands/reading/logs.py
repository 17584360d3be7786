"""`rootlet logs` (kubectl pkg/cmd/logs)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import click
import msgspec

from ipc.host.text.json_types import Json
from supervisor.cli.options import (
    CommandOptions,
    Failure,
    agent,
    agent_options,
    container_option,
    duration_s,
    namespace_option,
    selector_option,
    split_pod_name,
)
from supervisor.cli.printers.containers import container_names, default_container, find_container, named_containers
from supervisor.cli.streams.log_streams import LogStream, print_streams
from supervisor.client.http import AgentClient, Query, pod_path, pods_path

MAX_LOG_REQUESTS: Final = 5
"""Logs that are followed at a time, unless said otherwise (kubectl logs.go, MaxFollowConcurrency)."""
SELECTED_TAIL: Final = 10
"""Lines of each container that are shown of selected pods, unless said otherwise (logs.go, selectorTail)."""
_PRINTED: Final = ("initContainers", "containers", "ephemeralContainers")
"""In which order --all-containers prints them."""
USAGE: Final = (
    "expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.\n"
    "POD or TYPE/NAME is a required argument for the logs command\n"
    "See 'rootlet logs -h' for help and examples"
)


class LogTargets(msgspec.Struct, frozen=True, kw_only=True):
    """Containers whose logs are printed."""

    pod: str
    """Empty for those that are selected."""
    selector: str
    container: str
    all_containers: bool


@click.command()
@click.argument("pod", metavar="[POD]", default="")
@click.argument("container_argument", metavar="[CONTAINER]", default="")
@container_option
@selector_option
@click.option("--all-pods", is_flag=True, help="All pods of the namespace, or all that are selected; with --prefix.")
@click.option("--all-containers", is_flag=True, help="All of them: init containers first, ephemeral ones last.")
@click.option("--prefix", is_flag=True, help="Begin each line with pod and container.")
@click.option("--ignore-errors", is_flag=True, help="Go on with the others when a log cannot be read.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the container ends.")
@click.option(
    "--max-log-requests",
    type=click.IntRange(min=1),
    default=MAX_LOG_REQUESTS,
    show_default=True,
    help="Most logs to follow at a time.",
)
@click.option("-p", "--previous", is_flag=True, help="The life before the present one.")
@click.option(
    "--tail",
    type=int,
    default=None,
    help=f"Only the last so many lines; -1 is all.  [default: -1, {SELECTED_TAIL} with a selector]",
)
@click.option("--since", callback=duration_s, help="Only what is not older than this: 10s, 5m, 2h.")
@click.option("--since-time", default=None, help="Only what is not older than this RFC 3339 time.")
@click.option("--limit-bytes", type=click.IntRange(min=1), help="Stop after so many bytes.")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@namespace_option
@agent_options
@click.pass_context
def logs(
    ctx: click.Context,
    /,
    pod: str,
    container_argument: str,
    container: str,
    selector: str,
    all_pods: bool,
    all_containers: bool,
    prefix: bool,
    ignore_errors: bool,
    follow: bool,
    max_log_requests: int,
    namespace: str,
    **options: object,
) -> None:
    """Print the log of a container, of all containers of a pod, or of selected pods.

    \b
    rootlet logs web                      the first container, or the one that an annotation names
    rootlet logs web -c init -p           the life before the present one of any container
    rootlet logs web --all-containers -f  all of them as they come
    rootlet logs -l app=web --prefix      of all pods with that label
    """
    chosen = _chosen_container(container, container_argument, all_containers)
    if pod and (selector or all_pods):
        raise Failure("only a selector (-l) or a POD name is allowed", prefix="error: ")
    if not (pod or selector or all_pods):
        raise Failure(USAGE, prefix="error: ")
    query = {"follow": follow or None, **_log_query(options, is_selected=bool(selector))}
    name = split_pod_name(pod) if pod else ""
    wanted = LogTargets(pod=name, selector=selector, container=chosen, all_containers=all_containers)
    with agent(ctx) as client:
        found = list(_containers(_pods(client, namespace, wanted), wanted))
        if not found:
            click.echo(f"No resources found in {namespace} namespace.", err=True)
        if follow:
            _check_number(len(found), max_log_requests)
        streams = [
            LogStream(
                pieces=client.stream_log(namespace, name, {**query, "container": each}),
                prefix=f"[pod/{name}/{each}] ".encode() if prefix or all_pods else b"",
            )
            for name, each in found
        ]
        print_streams(streams, together=follow and len(streams) > 1, ignore_errors=ignore_errors)


def _log_query(options: CommandOptions, *, is_selected: bool) -> Query:
    """Query for the lines of a log that are wanted. Raises Failure."""
    since, tail = options["since"], options["tail"]
    _check(since, options["since_time"], tail)
    if tail is None:
        tail = SELECTED_TAIL if is_selected else -1
    return {
        "previous": options["previous"] or None,
        "timestamps": options["timestamps"] or None,
        "tailLines": None if tail == -1 else tail,
        "sinceSeconds": max(1, math.ceil(since)) if since else None,
        "sinceTime": options["since_time"],
        "limitBytes": options["limit_bytes"],
    }


def _chosen_container(option: str, argument: str, all_containers: bool) -> str:
    """The container that was named, one way or the other; empty without one. Raises UsageError."""
    if option and argument:
        raise click.UsageError("only one of -c or an inline [CONTAINER] arg is allowed")
    chosen = option or argument
    if chosen and all_containers:
        raise click.UsageError(f"--all-containers should not be specified with container name {chosen}")
    return chosen


def _check_number(streams: int, most: int) -> None:
    """Raises Failure for more streams that are followed than are allowed."""
    if streams > most:
        raise Failure(
            f"you are attempting to follow {streams} log streams, but maximum allowed concurrency is"
            f" {most}, use --max-log-requests to increase the limit",
            prefix="error: ",
        )


def _check(since: float | None, since_time: str | None, tail: int | None) -> None:
    """Raises Failure, in the words and order of kubectl's logs.go, Validate; a ``since`` of 0 is none."""
    wrong = (
        (bool(since_time and since), "at most one of `sinceTime` or `sinceSeconds` may be specified"),
        ((since or 0) < 0, "--since must be greater than 0"),
        (tail is not None and tail < -1, "--tail must be greater than or equal to -1"),
    )
    for is_so, words in wrong:
        if is_so:
            raise Failure(words, prefix="error: ")


def _pods(client: AgentClient, namespace: str, wanted: LogTargets) -> Sequence[Json]:
    if wanted.pod:
        return [client.get(pod_path(namespace, wanted.pod))]
    found: Sequence[Json] = client.get(pods_path(namespace), {"labelSelector": wanted.selector or None})["items"]
    return found


def _containers(pods: Sequence[Json], wanted: LogTargets) -> Iterator[tuple[str, str]]:
    """Names of pods and containers. Raises Failure for a container that none of the pods has."""
    for pod in pods:
        name = pod["metadata"]["name"]
        if wanted.all_containers:
            yield from ((name, each) for each in container_names(pod, *_PRINTED))
        elif not wanted.container:
            yield name, default_container(pod)
        elif find_container(pod, wanted.container) is not None:
            yield name, wanted.container
        else:
            message = f"container {wanted.container} is not valid for pod {name} out of: {named_containers(pod)}"
            raise Failure(message, prefix="error: ")
