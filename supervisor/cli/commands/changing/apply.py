"""`rootlet apply`."""

from __future__ import annotations

import click

from supervisor.cli.changing.applying import apply_manifests
from supervisor.cli.changing.changes import (
    ChangeReport,
    dry_run_option,
    output_option,
    stated_namespace_option,
)
from supervisor.cli.manifests import Manifest, manifest_options, read_manifests, recursive_option
from supervisor.cli.options import agent, agent_options
from supervisor.client.http import AgentClient


@click.command()
@manifest_options
@recursive_option
@click.option("--prune", is_flag=True, help="Delete applied objects of -l or --all that the manifests state no more.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="With --prune: objects with these labels.")
@click.option("--all", "everything", is_flag=True, help="With --prune: all objects of the manifests' namespaces.")
@stated_namespace_option
@dry_run_option
@output_option
@agent_options
@click.pass_context
def apply(
    ctx: click.Context,
    files: tuple[str, ...],
    recursive: bool,
    prune: bool,
    selector: str,
    everything: bool,
    namespace: str,
    dry_run: str,
    output: str,
) -> None:
    """Create or change pods and objects beside them: all of one file, or none of it when something in it is wrong.

    What `label`, `patch`, `set` and `edit` have changed since stays, unless the manifest says otherwise. A list with a
    name twice is the manifest's alone.

    \b
    rootlet apply -f web.yaml
    rootlet apply -R -f manifests --prune -l app=shop
    """
    if not files:
        raise click.UsageError("must specify one of -f and -k")
    if prune and not (selector or everything):
        raise click.UsageError(
            "all resources selected for prune without explicitly passing --all. To prune all "
            "resources, pass the --all flag. If you did not mean to prune all resources, specify a "
            "label selector"
        )
    if (selector or everything) and not prune:
        raise click.UsageError("-l and --all say what --prune may delete: give --prune, too")
    manifests = list(read_manifests(files, recursive=recursive))
    report = ChangeReport(output=output, dry_run=dry_run)
    with agent(ctx) as client:
        apply_manifests(client, manifests, report, namespace=namespace)
        if prune:
            _prune(client, manifests, report, selector, namespace)


def _prune(client: AgentClient, manifests: list[Manifest], report: ChangeReport, selector: str, namespace: str) -> None:
    from supervisor.cli.changing.pruning import prune_objects

    prune_objects(client, manifests, report, selector=selector, namespace=namespace)
