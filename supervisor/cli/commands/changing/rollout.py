"""`rootlet rollout`: kubectl's words for `rootlet restart`."""

from __future__ import annotations

import click

from supervisor.cli.changing.changes import Choice, stated_namespace_option
from supervisor.cli.changing.restarts import Restart, restart_pods
from supervisor.cli.manifests import manifest_options, recursive_option
from supervisor.cli.options import FOREVER_S, agent, agent_options, duration_s


@click.group()
def rollout() -> None:
    """Restart pods, in kubectl's words."""


@rollout.command("restart")
@click.argument("words", nargs=-1, metavar="(pod NAME | pod/NAME)...")
@manifest_options
@recursive_option
@click.option("-l", "--selector", default="", metavar="LABELS", help="Pods with these labels.")
@click.option("--timeout", callback=duration_s, default="0s", help="How long to wait for each; 0s: for ever.")
@stated_namespace_option
@agent_options
@click.pass_context
def restart(
    ctx: click.Context,
    words: tuple[str, ...],
    files: tuple[str, ...],
    recursive: bool,
    selector: str,
    timeout: float,
    namespace: str,
) -> None:
    """End pods in order and begin them anew, one after the other, as `rootlet restart pod` does.

    \b
    rootlet rollout restart pod/web
    """
    choice = Choice(words=words, files=files, recursive=recursive, selector=selector, namespace=namespace)
    with agent(ctx) as client:
        restart_pods(client, choice, Restart(None, timeout or FOREVER_S))
