"""Restarts of single containers that somebody has asked for (`rootlet restart container`).

A request names the container that is to be replaced by its id, so it is over when a newer one of that name is there,
and asking twice is asking once. Upstream has no such thing: there a person deletes the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.pod_containers import ContainerKind, every_container, find_container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.frozen import is_frozen
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimePodStatus
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import WorkType
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.parts import KnownPods, PodParts
from supervisor.pods.table import PodTable
from supervisor.protocol.events import ContainerRestartRequested, ContainerRestartsRestored
from supervisor.protocol.refusals import RequestRefused

SHORTEST_GRACE_S: Final = 1
"""A grace period of zero means this one, as for pods."""


class RequestedRestarts:
    """Owns the requests of each pod that are not carried out yet."""

    def __init__(self, known: KnownPods) -> None:
        self._known = known
        self.version = 0
        """Rises with every change."""
        known.on_forget(self._forgotten)

    def of_pod(self, uid: str) -> Mapping[str, int | None]:
        """Requests for containers of that pod."""
        return self._known.find(uid).restarts

    def everything(self) -> dict[str, dict[str, int | None]]:
        """A copy, for their checkpoint."""
        return {uid: dict(parts.restarts) for uid, parts in self._known.items() if parts.restarts}

    def ask(self, uid: str, container_id: str, grace_period_s: int | None) -> None:
        """Have that container replaced."""
        self._keep(uid, {**self.of_pod(uid), container_id: grace_period_s})

    def observed(self, uid: str, status: RuntimePodStatus) -> None:
        """Drop requests whose container has a successor, or is gone."""
        newest = {container.name: container.id for container in reversed(status.containers)}
        self._keep(uid, {id: grace_s for id, grace_s in self.of_pod(uid).items() if id in newest.values()})

    def _forgotten(self, _: str, parts: PodParts) -> None:
        self.version += bool(parts.restarts)

    def _keep(self, uid: str, asked: dict[str, int | None]) -> None:
        if asked != self.of_pod(uid):
            self._known.of(uid).restarts = asked
            self.version += 1


class ContainerRestarts(msgspec.Struct, frozen=True, eq=False):
    """Takes requests for pods of the table."""

    _requested: RequestedRestarts
    _pod_table: PodTable
    _cache: PodCache
    _reporter: PodReporter

    def request(
        self, namespace: str, name: str, container: str, grace_period_s: int | None
    ) -> ContainerRestartRequested:
        """The event that asks for a container's restart. Raises RequestRefused."""
        wanted = f"{namespace}/{name}"
        state = next((state for state in self._pod_table if state.name == wanted and state.pod is not None), None)
        if state is None or state.pod is None:
            raise RequestRefused(404, "NotFound", f'pods "{name}" not found')
        if state.lifecycle.phase is not WorkType.SYNC:
            raise RequestRefused(409, "Conflict", f'pod "{name}" ends or has ended: none of its containers can restart')
        observed = self._cache.get(state.uid)
        if is_frozen(observed):
            raise RequestRefused(409, "Conflict", f'pod "{name}" is paused: resume it first')
        id = replaceable_container(state.pod, observed, container)
        grace_s = grace_period_s if grace_period_s is None else max(grace_period_s, SHORTEST_GRACE_S)
        return ContainerRestartRequested(uid=state.uid, container_id=id, name=container, grace_period_s=grace_s)

    def on_request(self, request: ContainerRestartRequested, now: Instant) -> None:
        """The pod's next sync carries it out."""
        state = self._pod_table.get(request.uid)
        if state is None or state.lifecycle.phase is not WorkType.SYNC:
            return
        self._requested.ask(request.uid, request.container_id, request.grace_period_s)
        message = f"Container {request.name} is to be restarted, as somebody has asked for"
        self._reporter.pod_event(state, event_reasons.CONTAINER_RESTART_REQUESTED, message, now)
        state.lifecycle.sync_soon()
        self._pod_table.touch((state.uid,))

    def on_restored(self, restored: ContainerRestartsRestored, now: Instant) -> None:
        """Requests that an earlier agent has not carried out."""
        for uid, asked in restored.pods.items():
            for container_id, grace_period_s in asked.items():
                self._requested.ask(uid, container_id, grace_period_s)


def replaceable_container(pod: Pod, status: RuntimePodStatus, name: str) -> str:
    """Id of the container that a restart of the one of that name replaces. Pure. Raises RequestRefused."""
    metadata, found = pod.metadata, find_container(pod.spec, name)
    if found is None:
        names = ", ".join(each.container.name for each in every_container(pod.spec))
        raise RequestRefused(
            400, "BadRequest", f'container "{name}" not found in pod "{metadata.name}": it has {names}'
        )
    named = f'container "{name}" of pod "{metadata.name}"'
    if found.kind is ContainerKind.EPHEMERAL:
        raise RequestRefused(409, "Conflict", f"{named} is an ephemeral container, which never starts again")
    newest = status.newest(name)
    if found.kind is ContainerKind.INIT and not is_restartable_init(found.container):
        done = newest is None or newest.state is ContainerState.EXITED
        words = "has done its work" if done else "is at work"
        text = f"{named} is an init container and {words}: restart the pod, and it runs again"
        raise RequestRefused(409, "Conflict", text)
    if newest is None or newest.state is ContainerState.CREATED:
        raise RequestRefused(409, "Conflict", f"{named} has not started yet")
    return newest.id
