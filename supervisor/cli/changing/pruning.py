"""Deletion of what was applied once and is stated no more: `rootlet apply --prune` (kubectl pkg/cmd/apply/prune.go)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from supervisor.cli.changing.changes import KINDS, PODS, ChangeReport, object_name
from supervisor.cli.manifests import Manifest, Target, objects_in
from supervisor.cli.options import DEFAULT_NAMESPACE
from supervisor.client.http import WITHOUT_NAMESPACE, AgentClient, config_objects_path, pods_path

_SOURCE: str = "kubernetes.io/config.source"
_APPLY: str = "apply"


def prune_objects(
    client: AgentClient, manifests: Iterable[Manifest], report: ChangeReport, *, selector: str, namespace: str
) -> None:
    """Delete what was applied and is in no manifest any more, in the namespaces that the manifests are about."""
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
