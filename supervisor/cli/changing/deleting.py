"""Deletion of applied objects, and the wait for their end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import click

from ipc.host.clock import monotonic
from ipc.k8s.resources.registry import BY_PLURAL
from supervisor.cli.changing.changes import PODS, ChangeReport, object_name
from supervisor.cli.manifests import Target
from supervisor.cli.options import Failure
from supervisor.client.errors import RequestFailed
from supervisor.client.http import AgentClient, Query, config_objects_path, pod_key, pods_path
from supervisor.client.reflector import Reflector

_NOT_FOUND: Final = 404
FORCE_WARNING: Final = (
    "Immediate deletion does not wait for confirmation that the running resource has been terminated. "
    "The resource may continue to run on the cluster indefinitely."
)
"""kubectl's own words (pkg/cmd/delete), which scripts look for."""


class Deletion:
    """Objects of some resources, watched while some of them are deleted."""

    def __init__(self, client: AgentClient, resources: Iterable[str], namespace: str | None, query: Query) -> None:
        """Lists them once; ``namespace`` None is all."""
        self._client = client
        self.there = {resource: _listed(client, resource, namespace, query) for resource in dict.fromkeys(resources)}
        self._going: dict[str, set[str]] = {resource: set() for resource in self.there}

    def found(self) -> list[Target]:
        """All that were listed."""
        return [
            Target(resource, *pod_key(found))
            for resource, seen in self.there.items()
            for found in seen.objects.values()
        ]

    def ask(self, target: Target, grace_period_s: int | None) -> None:
        """Raises RequestFailed."""
        if target.resource == PODS:
            self._client.delete_pod(target.namespace, target.name, grace_period_s)
        else:
            self._client.delete_config_object(target.resource, target.namespace, target.name)
        objects = self.there[target.resource].objects
        self._going[target.resource] |= {
            uid for uid, found in objects.items() if pod_key(found) == (target.namespace, target.name)
        }

    def wait(self, timeout_s: float) -> list[str]:
        """Wait for what was asked for; errors for what is not gone in time."""
        deadline = monotonic() + timeout_s
        return [problem for resource in self.there for problem in self._wait(resource, deadline)]

    def _wait(self, resource: str, deadline: float) -> list[str]:
        """Lists afresh: others were waited for, perhaps for all the time there was."""
        found, going = self.there[resource], self._going[resource]
        if not going:
            return []
        found.list()
        if found.wait_until(lambda: going.isdisjoint(found.objects), deadline - monotonic()):
            return []
        left = sorted(found.objects[uid]["metadata"]["name"] for uid in going.intersection(found.objects))
        return [f"error: timed out waiting for the end of {resource}/{name}" for name in left]


def _listed(client: AgentClient, resource: str, namespace: str | None, query: Query) -> Reflector:
    found = Reflector(
        client, pods_path(namespace) if resource == PODS else config_objects_path(resource, namespace), query
    )
    found.list()
    return found


def delete_targets(
    client: AgentClient,
    targets: Sequence[Target],
    *,
    grace_period_s: int | None,
    timeout_s: float,
    ignore_not_found: bool,
    report: ChangeReport | None = None,
    force: bool = False,
    deletion: Deletion | None = None,
) -> None:
    """Ask for each, then wait until what was there under these names is gone. Raises Failure with all problems."""
    report = report or ChangeReport()
    deletion = deletion or Deletion(client, (target.resource for target in targets), None, {})
    known = set(_listed_targets(deletion.there))
    problems = []
    for target in dict.fromkeys(targets):
        try:
            if report.is_dry:
                _check_there(target, known)
            else:
                deletion.ask(target, grace_period_s)
        except RequestFailed as error:
            if error.code != _NOT_FOUND or not ignore_not_found:
                problems.append(str(error))
            continue
        _tell(target, report, force=force)
    if timeout_s and not report.is_dry:
        problems += deletion.wait(timeout_s)
    if problems:
        raise Failure("\n".join(problems), prefix="")


def _listed_targets(there: Mapping[str, Reflector]) -> Iterator[Target]:
    for resource, seen in there.items():
        for found in seen.objects.values():
            yield Target(resource, *pod_key(found))


def _check_there(target: Target, known: set[Target]) -> None:
    if target not in known:
        raise RequestFailed(_NOT_FOUND, "NotFound", f'{target.resource} "{target.name}" not found')


def _tell(target: Target, report: ChangeReport, *, force: bool) -> None:
    """kubectl's line: with the namespace since 1.34."""
    if report.output == "name":
        click.echo(object_name(target))
        return
    kind = BY_PLURAL[target.resource].singular
    done = f"{'force ' if force else ''}deleted"
    where = f" from {target.namespace} namespace" if target.namespace else ""
    click.echo(report.line(f'{kind} "{target.name}"', f"{done}{where}"))
