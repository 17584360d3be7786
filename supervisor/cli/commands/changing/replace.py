"""`rootlet replace`."""

from __future__ import annotations

import click

from supervisor.cli.changing.applying import apply_manifests
from supervisor.cli.changing.changes import (
    SERVER,
    ChangeReport,
    dry_run_option,
    output_option,
    stated_namespace_option,
)
from supervisor.cli.changing.deleting import delete_targets
from supervisor.cli.manifests import manifest_options, objects_in, read_manifests, recursive_option
from supervisor.cli.options import DEFAULT_NAMESPACE, agent, agent_options, duration_s


@click.command()
@manifest_options
@recursive_option
@click.option("--force", is_flag=True, help="Delete the objects, wait for their end, and create them anew.")
@click.option("--grace-period", type=click.IntRange(min=-1), default=-1, help="With --force: seconds to end in.")
@click.option("--timeout", callback=duration_s, default="5m", show_default=True, help="With --force: how long to wait.")
@stated_namespace_option
@dry_run_option
@output_option
@agent_options
@click.pass_context
def replace(
    ctx: click.Context,
    files: tuple[str, ...],
    recursive: bool,
    force: bool,
    grace_period: int,
    timeout: float,
    namespace: str,
    dry_run: str,
    output: str,
) -> None:
    """Replace applied objects by what a manifest states; what commands have changed since does not count.

    \b
    rootlet replace -f web.yaml
    rootlet replace --force -f web.yaml
    """
    if not files:
        raise click.UsageError("must specify one of -f and -k")
    manifests = list(read_manifests(files, recursive=recursive))
    report = ChangeReport(output=output, dry_run=dry_run)
    with agent(ctx) as client:
        if not force or report.is_dry:
            apply_manifests(client, manifests, report, verb="replace", namespace=namespace)
            return
        # A document that would be refused is found before anything is deleted.
        apply_manifests(client, manifests, ChangeReport(dry_run=SERVER), namespace=namespace, quiet=True)
        targets = [target for manifest in manifests for target in objects_in(manifest, namespace or DEFAULT_NAMESPACE)]
        grace_period_s = grace_period if grace_period >= 0 else None
        delete_targets(client, targets, grace_period_s=grace_period_s, timeout_s=timeout, ignore_not_found=True)
        apply_manifests(client, manifests, report, namespace=namespace, done="replaced")
