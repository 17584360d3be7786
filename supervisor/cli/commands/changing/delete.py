"""`rootlet delete`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from ipc.host.clock import monotonic
from supervisor.cli.config_objects import OBJECT_ALIASES, SINGULAR
from supervisor.cli.manifests import Target, files_option, objects_in, read_manifests
from supervisor.cli.options import (
    POD_ALIASES,
    Failure,
    agent,
    agent_options,
    duration_s,
    namespace_option,
    selector_option,
)
from supervisor.client.errors import RequestFailed
from supervisor.client.http import WITHOUT_NAMESPACE, AgentClient, config_objects_path, pod_key, pods_path
from supervisor.client.reflector import Reflector

_PODS: Final = "pods"
_NOT_FOUND: Final = 404
_ALIASES: Final[Mapping[str, str]] = {**dict.fromkeys(POD_ALIASES, _PODS), **OBJECT_ALIASES}


@click.command()
@click.argument("names", nargs=-1, metavar="[pod|configmap|secret|priorityclass] [NAME...]")
@files_option
@click.option("--all", "everything", is_flag=True, help="Every one of the namespace.")
@click.option("--grace-period", type=click.IntRange(min=0), help="Seconds to end in, instead of the pod's own.")
@click.option("--now", is_flag=True, help="The same as --grace-period=1.")
@click.option("--wait/--no-wait", "wait", default=True, help="Return when they are gone.  [default: wait]")
@click.option("--timeout", callback=duration_s, default="5m", show_default=True, help="How long to wait.")
@click.option("--ignore-not-found", is_flag=True, help="What does not exist is no error.")
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
    """Delete pods, ConfigMaps, Secrets and PriorityClasses that were applied.

    \b
    rootlet delete pod web db
    rootlet delete secret password
    rootlet delete -f web.yaml
    """
    resource = _PODS
    if names[:1] and names[0] in _ALIASES:
        resource, names = _ALIASES[names[0]], names[1:]
    if (bool(names) + bool(files) + bool(everything or selector)) != 1:
        raise click.UsageError("say which by name, or give a manifest with -f, or --all or a selector")
    targets = [_named(text, resource, namespace) for text in names]
    targets += [target for manifest in read_manifests(files) for target in objects_in(manifest, namespace)]
    with agent(ctx) as client:
        resources = dict.fromkeys(target.resource for target in targets) or {resource: None}
        there = {name: _watch(client, name, None if files else namespace, selector) for name in resources}
        if everything or selector:
            targets = [Target(resource, *pod_key(found)) for found in there[resource].objects.values()]
        _delete(client, there, targets, 1 if now else grace_period, timeout if wait else 0.0, ignore_not_found)


def _named(text: str, resource: str, namespace: str) -> Target:
    """``web``, ``pod/web`` or ``cm/web``. Raises click.UsageError."""
    alias, slash, name = text.rpartition("/")
    if slash and alias not in _ALIASES:
        raise click.UsageError(f"{text!r}: the resource must be one of {', '.join(sorted(_ALIASES))}")
    if not name:
        raise click.UsageError(f"{text!r} names nothing")
    named = _ALIASES[alias] if slash else resource
    return Target(named, "" if named in WITHOUT_NAMESPACE else namespace, name)


def _watch(client: AgentClient, resource: str, namespace: str | None, selector: str) -> Reflector:
    """Reflector of a resource's objects, listed once."""
    path = pods_path(namespace) if resource == _PODS else config_objects_path(resource, namespace)
    found = Reflector(client, path, {"labelSelector": selector or None})
    found.list()
    return found


def _delete(
    client: AgentClient,
    there: Mapping[str, Reflector],
    targets: Sequence[Target],
    grace_period_s: int | None,
    timeout_s: float,
    ignore_not_found: bool,
) -> None:
    """Ask for each, then wait until what was there under these names is gone."""
    problems = []
    going: dict[str, set[str]] = {resource: set() for resource in there}
    for target in dict.fromkeys(targets):
        try:
            _ask(client, target, grace_period_s)
        except RequestFailed as error:
            if error.code != _NOT_FOUND or not ignore_not_found:
                problems.append(str(error))
            continue
        click.echo(f'{SINGULAR.get(target.resource, "pod")} "{target.name}" deleted')
        objects = there[target.resource].objects
        going[target.resource] |= {
            uid for uid, found in objects.items() if pod_key(found) == (target.namespace, target.name)
        }
    if timeout_s:
        deadline = monotonic() + timeout_s
        problems += [problem for resource in there for problem in _wait(resource, there, going[resource], deadline)]
    if problems:
        raise Failure("\n".join(problems), prefix="")


def _ask(client: AgentClient, target: Target, grace_period_s: int | None) -> None:
    if target.resource == _PODS:
        client.delete_pod(target.namespace, target.name, grace_period_s)
    else:
        client.delete_config_object(target.resource, target.namespace, target.name)


def _wait(resource: str, there: Mapping[str, Reflector], going: set[str], deadline: float) -> list[str]:
    """Errors for the objects that are not gone in time. Lists afresh: others were waited for, perhaps for all the time
    there was."""
    found = there[resource]
    found.list()
    if found.wait_until(lambda: going.isdisjoint(found.objects), deadline - monotonic()):
        return []
    left = sorted(found.objects[uid]["metadata"]["name"] for uid in going.intersection(found.objects))
    return [f"error: timed out waiting for the end of {resource}/{name}" for name in left]
