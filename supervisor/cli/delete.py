"""`rootlet delete`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from supervisor.cli.manifests import files_option, pods_in, read_manifests
from supervisor.cli.options import (
    POD_ALIASES,
    Failure,
    agent,
    agent_options,
    duration_s,
    namespace_option,
    selector_option,
    split_pod_name,
)
from supervisor.client import AgentClient, PodKey, RequestFailed, pod_key, pods_path
from supervisor.reflector import Reflector

_NOT_FOUND: Final = 404


@click.command()
@click.argument("names", nargs=-1, metavar="[pod NAME...]")
@files_option
@click.option("--all", "everything", is_flag=True, help="Every pod of the namespace.")
@click.option("--grace-period", type=click.IntRange(min=0), help="Seconds to end in, instead of the pod's own.")
@click.option("--now", is_flag=True, help="The same as --grace-period=1.")
@click.option("--wait/--no-wait", "wait", default=True, help="Return when the pods are gone.  [default: wait]")
@click.option("--timeout", callback=duration_s, default="5m", show_default=True, help="How long to wait.")
@click.option("--ignore-not-found", is_flag=True, help="A pod that does not exist is no error.")
@namespace_option
@selector_option
@agent_options
@click.pass_context
def delete(
    ctx: click.Context,
    names: tuple[str, ...],
    files: tuple[str, ...],
    everything: bool,
    grace_period: int | None,
    now: bool,
    wait: bool,
    timeout: float,
    ignore_not_found: bool,
    namespace: str,
    selector: str,
) -> None:
    """Delete pods that were applied.

    \b
    rootlet delete pod web db
    rootlet delete -f web.yaml
    """
    if names[:1] and names[0] in POD_ALIASES:
        names = names[1:]
    if (bool(names) + bool(files) + bool(everything or selector)) != 1:
        raise click.UsageError("name the pods, or give a manifest with -f, or --all or a selector")
    with agent(ctx) as client:
        pods = Reflector(client, pods_path(None if files else namespace), {"labelSelector": selector or None})
        pods.list()
        keys = [(namespace, split_pod_name(name)) for name in names]
        keys += [key for manifest in read_manifests(files) for key in pods_in(manifest, namespace)]
        if everything or selector:
            keys = [pod_key(pod) for pod in pods.objects.values()]
        _delete(client, pods, keys, 1 if now else grace_period, timeout if wait else 0.0, ignore_not_found)


def _delete(
    client: AgentClient,
    pods: Reflector,
    keys: Sequence[PodKey],
    grace_period_s: int | None,
    timeout_s: float,
    ignore_not_found: bool,
) -> None:
    """Ask for each, then wait until what was there under these names is gone."""
    problems = []
    going = set()
    for namespace, name in dict.fromkeys(keys):
        try:
            client.delete_pod(namespace, name, grace_period_s)
        except RequestFailed as error:
            if error.code != _NOT_FOUND or not ignore_not_found:
                problems.append(str(error))
            continue
        click.echo(f'pod "{name}" deleted')
        going |= {uid for uid, pod in pods.objects.items() if pod_key(pod) == (namespace, name)}
    if timeout_s and not pods.wait_until(lambda: going.isdisjoint(pods.objects), timeout_s):
        left = sorted(pods.objects[uid]["metadata"]["name"] for uid in going.intersection(pods.objects))
        problems += [f"error: timed out waiting for the end of pods/{name}" for name in left]
    if problems:
        raise Failure("\n".join(problems), prefix="")
