"""`rootlet apply`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from supervisor.cli.changing.applying import apply_manifests
from supervisor.cli.changing.changes import (
    KINDS,
    PODS,
    ChangeReport,
    dry_run_option,
    object_name,
    output_option,
    stated_namespace_option,
)
from supervisor.cli.manifests import Manifest, Target, manifest_options, objects_in, read_manifests, recursive_option
from supervisor.cli.options import DEFAULT_NAMESPACE, agent, agent_options
from supervisor.client.http import WITHOUT_NAMESPACE, AgentClient, config_objects_path, pods_path


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
    from supervisor.cli.commands.changing.apply import prune_objects

    prune_objects(client, manifests, report, selector=selector, namespace=namespace)


_SOURCE: str = "kubernetes.io/config.source"
_APPLY: str = "apply"


def prune_objects(
    client: AgentClient, manifests: Iterable[Manifest], report: ChangeReport, *, selector: str, namespace: str
) -> None:
    """Delete what was applied and is in no manifest any more, in the namespaces that the manifests are about (kubectl
    pkg/cmd/apply/prune.go)."""
    stated = {target for manifest in manifests for target in objects_in(manifest, namespace or DEFAULT_NAMESPACE)}
    namespaces = sorted({target.namespace for target in stated if target.namespace} | ({namespace} - {""}))
    for target in [found for name in namespaces for found in _applied(client, name, selector) if found not in stated]:
        if not report.is_dry:
            if target.resource == PODS:
                client.delete_pod(target.namespace, target.name)
            else:
                client.delete_config_object(target.resource, target.namespace, target.name)
        click.echo(report.line(object_name(target), "pruned"), err=bool(report.output))


def _applied(client: AgentClient, namespace: str, selector: str) -> Iterator[Target]:
    """Pods first: what they use goes after them. Objects without a namespace are not pruned."""
    query = {"labelSelector": selector or None}
    for pod in client.get(pods_path(namespace), query)["items"]:
        if pod["metadata"].get("annotations", {}).get(_SOURCE) == _APPLY:
            yield Target(PODS, namespace, pod["metadata"]["name"])
    for resource in KINDS.keys() - {PODS, *WITHOUT_NAMESPACE}:
        for found in client.get(config_objects_path(resource, namespace), query)["items"]:
            if str(found.get("source", "")).partition(":")[0] == _APPLY:
                yield Target(resource, namespace, found["metadata"]["name"])
