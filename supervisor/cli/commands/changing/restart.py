"""`rootlet restart`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from supervisor.cli.changing.changes import PODS, pods_choice, pods_options, stated_namespace_option
from supervisor.cli.changing.restarts import Restart, restart_containers, restart_pods
from supervisor.cli.manifests import Target
from supervisor.cli.options import DEFAULT_NAMESPACE, FOREVER_S, agent, agent_options, duration_s, split_pod_name

F = TypeVar("F", bound=Callable[..., object])


def _restart_options(command: F) -> F:
    """How something is restarted."""
    for option in (
        click.option("--grace-period", type=click.IntRange(min=0), help="Seconds to end in, instead of the pod's own."),
        click.option("--wait/--no-wait", "wait", default=True, help="Go on when it is Ready again.  [default: wait]"),
        click.option("--timeout", callback=duration_s, default="0s", help="How long to wait for each; 0s: for ever."),
        agent_options,
    ):
        command = option(command)
    return command


@click.group()
def restart() -> None:
    """Restart pods, or single containers of a pod."""


@restart.command()
@pods_options
@_restart_options
@click.pass_context
def pod(
    ctx: click.Context,
    names: tuple[str, ...],
    selector: str,
    everything: bool,
    grace_period: int | None,
    wait: bool,
    timeout: float,
    namespace: str,
) -> None:
    """End pods in order and begin them anew, one after the other, each when the one before is Ready again.

    preStop hooks run, grace periods hold, and init containers run again; emptyDir volumes begin empty. Pods of manifest
    files can be restarted, too.

    \b
    rootlet restart pod web db
    rootlet restart pod -l app=shop --timeout=2m
    """
    choice = pods_choice(names, selector, everything, namespace)
    with agent(ctx) as client:
        restart_pods(client, choice, Restart(grace_period, (timeout or FOREVER_S) if wait else 0.0))


@restart.command()
@click.argument("pod")
@click.option("-c", "--container", "containers", multiple=True, help="Which container; several by several -c.")
@stated_namespace_option
@_restart_options
@click.pass_context
def container(
    ctx: click.Context,
    pod: str,
    containers: tuple[str, ...],
    grace_period: int | None,
    wait: bool,
    timeout: float,
    namespace: str,
) -> None:
    """End a container in order and begin it anew, without a back-off; the others of its pod go on.

    Its preStop hook runs and its grace period holds; its volumes stay. One that waits for its back-off begins at once.
    Of init containers only sidecars can be restarted.

    \b
    rootlet restart container web -c proxy
    rootlet restart container web -c proxy -c cache --timeout=2m
    """
    target = Target(PODS, namespace or DEFAULT_NAMESPACE, split_pod_name(pod))
    with agent(ctx) as client:
        wanted = Restart(grace_period, (timeout or FOREVER_S) if wait else 0.0)
        restart_containers(client, target, containers, wanted)
