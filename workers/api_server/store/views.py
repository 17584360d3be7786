"""The shapes of answers that Kubernetes has no type for. Plain values; JSON in camelCase."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ipc.host.clock import rfc3339
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.link.messages.api_server import AgentChanged, ObjectSummary, PodChanged, Reply
from ipc.link.messages.wait_reasons import NextStep
from ipc.link.shm.board import WorkerCounters

_API_VERSION: Final = "rootlet.dev/v1alpha1"
NO_OBJECTS: Final = msgspec.Raw(b"[]")


class VersionInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The agent about itself. ``gitVersion`` is where kubectl looks for a server's version."""

    git_version: str
    instance: str
    node_name: str
    pid: int
    started_at: float
    """Epoch seconds."""
    runtime_version: str
    runtime_healthy: bool
    runtime_message: str
    runtime_silent_since: float
    """Epoch seconds; 0 while Podman answers. What is shown of pods was seen before."""
    sources_ready: bool
    config_file: str
    """Path; empty for all defaults."""


class Resources(msgspec.Struct, frozen=True, rename="camel"):
    """Memory and CPU time of one process, from /proc."""

    rss_bytes: int
    pss_bytes: int | None
    """Share of memory; None when the kernel does not tell us (a process in another user namespace)."""
    cpu_seconds: float


class WorkerView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One row of `get workers`: what the master says, and what the worker itself wrote on the board."""

    kind: str = "Worker"
    api_version: str = _API_VERSION
    metadata: ObjectMeta
    slot: int
    role: str
    name: str
    pid: int
    incarnation: int
    state: str
    pods: int
    deaths: int
    heartbeat_age_seconds: float | None = None
    """None before the first beat, and for children that write none."""
    step: str = ""
    breaker: str = ""
    """How it stands with Podman: Closed, Open or HalfOpen; empty when it does not speak to it."""
    counters: WorkerCounters | None = None
    resources: Resources | None = None


NAMESPACE_PHASE: Final = "Active"
_ALWAYS: Final = "default"
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"


class NamespaceStatus(msgspec.Struct, frozen=True):
    """core/v1 NamespaceStatus."""

    phase: str = NAMESPACE_PHASE


class NamespaceView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A v1 Namespace: nothing keeps one, it is there while something is in it."""

    kind: str = "Namespace"
    api_version: str = "v1"
    metadata: ObjectMeta
    status: NamespaceStatus = NamespaceStatus()


def namespace_views(names: Iterable[str], since: float) -> list[NamespaceView]:
    """Make namespaces of these names, beside the one that is always there. All are as old as the agent (``since``)."""
    began = rfc3339(since)
    return [
        NamespaceView(metadata=ObjectMeta(name=name, labels={_NAMESPACE_LABEL: name}, creation_timestamp=began))
        for name in sorted({_ALWAYS, *names})
    ]


class SandboxView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The Podman pod that holds a pod's containers."""

    id: str
    attempt: int
    """How many were made for this pod before it."""
    state: str


class PodDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The part of `describe pod` that the v1 Pod does not have."""

    kind: str = "PodDetails"
    api_version: str = _API_VERSION
    source: str
    worker: str
    """Name of the worker that owns the pod; empty when nobody does."""
    sandbox: SandboxView | None
    """The newest one; None when there was none yet, or none is left."""
    next_try: dict[str, str]
    """Container name -> when its next start comes, and why not now."""
    summary: str
    """Summary of the last sync: its findings and its actions."""
    next_step: NextStep | None = None
    """None where the master did not say."""


class ObjectView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A ConfigMap or Secret: names and sizes, never values. Of a kind of its own, so that nobody who applies what was
    shown makes an empty object of it."""

    kind: str
    api_version: str = _API_VERSION
    metadata: ObjectMeta
    type: str
    """Type of a Secret; empty for a ConfigMap."""
    immutable: bool
    data_sizes: dict[str, int]
    """Key to the size of its value in bytes; of very many keys the first."""
    keys: int
    """Number of all keys."""
    size_bytes: int
    """Bytes of all values."""
    source: str
    """The source that states the object, and where."""


class ActionResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The master's reply to a change of several objects: a line for each, and whether all of it was done."""

    kind: str = "ActionResult"
    api_version: str = _API_VERSION
    code: int
    reason: str
    message: str
    results: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Lines for people, beside what was done."""
    objects: msgspec.Raw = NO_OBJECTS
    """The objects as they became, where that was asked for."""


def version_info(agent: AgentChanged) -> VersionInfo:
    """The agent's own words without its workers."""
    return VersionInfo(
        git_version=f"v{agent.version}",
        instance=agent.instance,
        node_name=agent.node_name,
        pid=agent.pid,
        started_at=agent.started_at,
        runtime_version=agent.runtime_version,
        runtime_healthy=agent.runtime_healthy,
        runtime_message=agent.runtime_message,
        runtime_silent_since=agent.runtime_silent_since,
        sources_ready=agent.sources_ready,
        config_file=agent.config_file,
    )


def pod_details(pod: PodChanged, agent: AgentChanged, next_step: NextStep | None) -> PodDetails:
    """Convert the master's report of a pod, with its worker's name instead of a slot."""
    newest = pod.sandbox
    return PodDetails(
        source=pod.source,
        worker=next((worker.name for worker in agent.workers if worker.slot == pod.slot), ""),
        sandbox=SandboxView(id=newest.id, attempt=newest.attempt, state=newest.state) if newest else None,
        next_try=pod.next_try,
        summary=pod.summary,
        next_step=next_step,
    )


def object_view(summary: ObjectSummary, metadata: ObjectMeta) -> ObjectView:
    """Convert the master's summary of a ConfigMap or Secret, under that metadata."""
    return ObjectView(
        kind=f"{summary.kind}Summary",
        metadata=metadata,
        type=summary.type,
        immutable=summary.immutable,
        data_sizes=summary.sizes,
        keys=summary.keys,
        size_bytes=summary.size_bytes,
        source=f"{summary.source}: {summary.file}",
    )


def action_result(reply: Reply) -> ActionResult:
    """The reply without the number that only the link needs."""
    objects = msgspec.Raw(reply.objects.encode()) if reply.objects else NO_OBJECTS
    return ActionResult(
        code=reply.code,
        reason=reply.reason,
        message=reply.message,
        results=reply.results,
        warnings=reply.warnings,
        objects=objects,
    )
