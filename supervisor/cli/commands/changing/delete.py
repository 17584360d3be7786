"""`rootlet delete`."""

from __future__ import annotations

from typing import Final

import click

from supervisor.cli.changing.changes import (
    NO_NAME,
    NO_TYPE,
    ChangeReport,
    dry_run_option,
    object_name,
    types_and_objects,
)
from supervisor.cli.changing.deleting import FORCE_WARNING, Deletion, delete_targets
from supervisor.cli.manifests import Target, manifest_options, objects_in, read_manifests, recursive_option
from supervisor.cli.options import (
    FOREVER_S,
    Failure,
    agent,
    agent_options,
    duration_s,
    everything_option,
    listing_options,
)

ONE_WAY: Final = "say which by name, or give a manifest with -f, or --all or a selector"


@click.command()
@click.argument("names", nargs=-1, metavar="[pod|configmap|secret|priorityclass|runtimeclass|pv|pvc] [NAME...]")
@manifest_options
@recursive_option
@everything_option
@click.option("--force", is_flag=True, help="With --grace-period=0: return at once, whatever still runs.")
@click.option("--grace-period", type=click.IntRange(min=-1), default=-1, help="Seconds to end in; -1: the pod's own.")
@click.option("--now", is_flag=True, help="The same as --grace-period=1.")
@click.option("--wait/--no-wait", "wait", default=True, help="Return when they are gone.  [default: wait]")
@click.option("--timeout", callback=duration_s, default="0s", help="How long to wait; 0s: for ever.")
@click.option("--ignore-not-found", is_flag=True, help="What does not exist is no error.")
@click.option("-i", "--interactive", is_flag=True, help="Ask before anything is deleted.")
@click.option("-o", "--output", type=click.Choice(["", "name"]), default="", metavar="FORMAT", help="name: only names.")
@dry_run_option
@listing_options
@agent_options
@click.pass_context
def delete(
    ctx: click.Context,
    names: tuple[str, ...],
    files: tuple[str, ...],
    recursive: bool,
    everything: bool,
    field_selector: str,
    force: bool,
    grace_period: int,
    now: bool,
    wait: bool,
    timeout: float,
    ignore_not_found: bool,
    interactive: bool,
    output: str,
    dry_run: str,
    all_namespaces: bool,
    namespace: str,
    selector: str,
) -> None:
    """Delete pods and other objects that were applied.

    \b
    rootlet delete pod web db
    rootlet delete secret password
    rootlet delete -f web.yaml
    rootlet delete pods -l app=web --grace-period=5
    """
    listed = everything or bool(selector or field_selector)
    resources, targets = _meant(names, namespace, is_listed=listed, has_files=bool(files))
    report = ChangeReport(output=output, dry_run=dry_run)
    grace_period_s = _grace_period_s(grace_period, now=now, force=force)
    manifests = read_manifests(files, recursive=recursive)
    targets += [target for manifest in manifests for target in objects_in(manifest, namespace)]
    with agent(ctx) as client:
        resources = [target.resource for target in targets] or resources
        query = {"labelSelector": selector or None, "fieldSelector": field_selector or None}
        deletion = Deletion(client, resources, None if files or all_namespaces else namespace, query)
        targets = targets or deletion.found()
        if not targets and not ignore_not_found:
            click.echo("No resources found")
        if interactive and not report.is_dry and not _confirmed(targets):
            return
        delete_targets(
            client,
            targets,
            grace_period_s=grace_period_s,
            timeout_s=(timeout or FOREVER_S) if wait and not force else 0.0,
            ignore_not_found=ignore_not_found or listed,
            report=report,
            force=force,
            deletion=deletion,
        )


def _meant(
    names: tuple[str, ...], namespace: str, *, is_listed: bool, has_files: bool
) -> tuple[list[str], list[Target]]:
    """Types and objects of the words. Raises Failure and click.UsageError unless objects are meant in just one way."""
    if has_files and (names or is_listed):
        raise click.UsageError(ONE_WAY)
    if not names and not has_files:
        raise click.UsageError(NO_TYPE)
    resources, targets = types_and_objects(names, namespace) if names else ([], [])
    if targets and is_listed:
        raise click.UsageError(ONE_WAY)
    if not (targets or has_files or is_listed):
        raise Failure(NO_NAME, prefix="error: ")
    return resources, targets


def _grace_period_s(grace_period: int, *, now: bool, force: bool) -> int | None:
    """None is the pod's own. Raises Failure (kubectl pkg/cmd/delete, Complete)."""
    if now and grace_period != -1:
        raise Failure("--now and --grace-period cannot be specified together", prefix="error: ")
    if force and (now or grace_period > 0):
        raise Failure("--force and --grace-period greater than 0 cannot be specified together", prefix="error: ")
    if force:
        click.echo(f"Warning: {FORCE_WARNING}", err=True)
        return 0
    if grace_period == 0 or now:
        return 1
    return None if grace_period < 0 else grace_period


def _confirmed(targets: list[Target]) -> bool:
    """Asked on the terminal, in kubectl's words."""
    click.echo("You are about to delete the following " + str(len(targets)) + " resource(s):")
    click.echo("".join(f"{object_name(target)}\n" for target in targets), nl=False)
    answer = click.prompt("Do you want to continue?", default="n", type=click.Choice(["y", "n"]))
    if answer != "y":
        click.echo("deletion is cancelled")
    return answer == "y"
