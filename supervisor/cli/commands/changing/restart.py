"""`rootlet restart`."""

from __future__ import annotations

import click

from supervisor.cli.changing.changes import Choice, stated_namespace_option
from supervisor.cli.changing.restarts import Restart, restart_pods
from supervisor.cli.options import FOREVER_S, agent, agent_options, duration_s


@click.group()
def restart() -> None:
    """Restart pods."""


@restart.command()
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Pods with these labels.")
@click.option("--all", "everything", is_flag=True, help="All pods of the namespace.")
@click.option("--grace-period", type=click.IntRange(min=0), help="Seconds to end in, instead of the pod's own.")
@click.option("--wait/--no-wait", "wait", default=True, help="Go on when the pod is Ready again.  [default: wait]")
@click.option("--timeout", callback=duration_s, default="0s", help="How long to wait for each; 0s: for ever.")
@stated_namespace_option
@agent_options
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
    if bool(names) == bool(selector or everything):
        raise click.UsageError("name the pods, or give --all or a selector")
    choice = Choice(words=("pods", *names), selector=selector, everything=everything, namespace=namespace)
    with agent(ctx) as client:
        restart_pods(client, choice, Restart(grace_period, (timeout or FOREVER_S) if wait else 0.0))
