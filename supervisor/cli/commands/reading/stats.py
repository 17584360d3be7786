"""`rootlet stats`: everything that is known of what pods use, and where each figure is from."""

from __future__ import annotations

import click

from supervisor.cli.options import (
    Failure,
    agent,
    agent_options,
    all_namespaces_option,
    document_option,
    namespace_option,
    split_pod_name,
)
from supervisor.cli.printers import usage
from supervisor.cli.printers.documents import DOCUMENTS
from supervisor.cli.printers.tables import TablePrinter
from supervisor.client.http import STATISTICS_PATH, pods_path


@click.command()
@click.argument("names", nargs=-1, metavar="[POD]...")
@namespace_option
@all_namespaces_option
@document_option(metavar="FORMAT")
@agent_options
@click.pass_context
def stats(ctx: click.Context, names: tuple[str, ...], namespace: str, all_namespaces: bool, output: str) -> None:
    """Show CPU, memory, network, processes and disk of pods; as a document with every figure and its source.

    \b
    rootlet stats -A
    rootlet stats web -o yaml
    """
    wanted = {split_pod_name(name) for name in names}
    with agent(ctx) as client:
        snapshot = client.get(STATISTICS_PATH)
        found = [pod for pod in snapshot.get("pods", ()) if all_namespaces or pod["namespace"] == namespace]
        if missing := wanted - {pod["name"] for pod in found}:
            there = client.get(pods_path(None if all_namespaces else namespace))["items"]
            raise Failure(usage.why_missing(missing, there))
    shown = usage.in_order((pod for pod in found if not wanted or pod["name"] in wanted), "")
    if output:
        click.echo(DOCUMENTS[output]({**snapshot, "pods": shown}), nl=False)
        return
    header = ("NAMESPACE", *usage.STATS_HEADER) if all_namespaces else usage.STATS_HEADER
    rows = ((pod["namespace"], *usage.stats_row(pod)) if all_namespaces else usage.stats_row(pod) for pod in shown)
    click.echo(TablePrinter(header).format(rows), nl=False)
