"""From the tables' JSON to our types. Translation only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from ipc.host import clock
from ipc.k8s.api.pod_containers import every_container
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.kubecontainer.hashing import container_hash, sandbox_hash
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.probe_results import ProbeResult, ProbeResults
from ipc.k8s.podresources.allocation import NO_RESOURCES, resizable_part

Json = Mapping[str, Any]
_T = TypeVar("_T")

ANOTHER_HASH: Final = "of another definition"
OOM_KILLED: Final = "OOMKilled"
"""Upstream's runtimes tell it as a reason."""
_SANDBOX_STATES: Final = {"READY": SandboxState.READY, "NOTREADY": SandboxState.NOT_READY}


def pod(data: Json) -> Pod:
    """A pod as a Go test built it: nothing is defaulted."""
    return Pod(metadata=convert(data.get("metadata", {}), ObjectMeta), spec=pod_spec(data["spec"]))


def pod_spec(data: Json) -> PodSpec:
    return convert({"containers": [], **without_nulls(data)}, PodSpec)


def convert(data: Json, kind: type[_T]) -> _T:
    return msgspec.convert(without_nulls(data), kind)


def without_nulls(data: Any) -> Any:
    """In Go's JSON null is absence."""
    if isinstance(data, Mapping):
        return {key: without_nulls(value) for key, value in data.items() if value is not None}
    return [without_nulls(value) for value in data] if isinstance(data, list) else data


def wall(stamp: str | float | None) -> float:
    """Epoch seconds of a time stamp; null is never."""
    return clock.parse_rfc3339(stamp) if isinstance(stamp, str) else float(stamp or 0)


def pod_status(data: Json, of: Pod, actuated: Json | None = None, pod_level: Json | None = None) -> RuntimePodStatus:
    """Every container lies in the newest sandbox: the tables do not say where. ``actuated`` is upstream's record of
    resources that containers were given, ``pod_level`` that of the pod; without them they are those of the pod."""
    known = of.spec.resources if pod_level is None and not actuated else convert(pod_level or {}, ResourceRequirements)
    whole = resizable_part(known)
    sandboxes = tuple(_sandbox(s, sandbox_hash(of), whole) for s in data.get("sandboxes") or ())
    hashes = {found.container.name: container_hash(found.container, found.kind) for found in every_container(of.spec)}
    newest_id = sandboxes[0].id if sandboxes else ""
    resources = {found.container.name: found.container.resources for found in every_container(of.spec)}
    if actuated:
        resources = {name: convert(actuated.get(name) or {}, ResourceRequirements) for name in resources}
    containers = tuple(
        _container(c, hashes, newest_id, resources.get(c["name"], NO_RESOURCES)) for c in data.get("containers") or ()
    )
    return RuntimePodStatus(uid=of.metadata.uid, sandboxes=sandboxes, containers=containers)


def _sandbox(data: Json, hash: str, resources: ResourceRequirements) -> SandboxStatus:
    return SandboxStatus(
        id=data["id"],
        name=data["id"],
        infra_id=f"{data['id']}-infra",
        attempt=data["attempt"],
        state=_SANDBOX_STATES[data["state"]],
        hash=hash,
        resources=resources,
        created_at=wall(data["created_at"]),
        host_network=data["network_namespace"] == "NODE",
        ips=(data["ip"],) if data["ip"] else (),
    )


def container_status(data: Json) -> RuntimeContainerStatus:
    """Container of a case that is about one only."""
    return _container({"id": "", "name": "", "restart_count": 0, **data}, {}, "")


def probe_results_by_id(data: Json) -> ProbeResults:
    """A probe without a result is absent."""
    return ProbeResults(**{probe: ProbeResult(result.lower()) for probe, result in data.items()})


def _container(
    data: Json, hashes: Mapping[str, str], sandbox_id: str, resources: ResourceRequirements = NO_RESOURCES
) -> RuntimeContainerStatus:
    own_hash = hashes.get(data["name"], "")
    return RuntimeContainerStatus(
        id=data["id"],
        name=data["name"],
        attempt=data["restart_count"],
        state=ContainerState(data["state"].lower()),
        sandbox_id=sandbox_id,
        hash=own_hash if data.get("hash_matches", True) else ANOTHER_HASH,
        created_at=wall(data.get("created_at")),
        started_at=wall(data.get("started_at")),
        finished_at=wall(data.get("finished_at")),
        exit_code=data["exit_code"],
        oom_killed=data["reason"] == OOM_KILLED,
        resources=resizable_part(resources),
    )
