"""Pods and observations for the tests of the decisions."""

from __future__ import annotations

from typing import Any

import msgspec

from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.container import Container
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
from ipc.k8s.podresources.allocation import resizable_part

UID = "0c3ad6a8-0000-4000-8000-000000000001"
IMAGE = "localhost/busybox:latest"


def container(name: str, **fields: Any) -> Container:
    return Container(name=name, **{"image": IMAGE, "args": ("sleep", "1000000"), **fields})


def sidecar(name: str, **fields: Any) -> Container:
    return container(name, restart_policy="Always", **fields)


def pod(*containers: str | Container, uid: str = UID, name: str = "web", **spec: Any) -> Pod:
    """A pod of these containers, or of one named ``main``."""
    made = tuple(container(c) if isinstance(c, str) else c for c in containers or ("main",))
    fields = {"termination_grace_period_seconds": 30, "restart_policy": "Always", **spec}
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=uid), spec=PodSpec(containers=made, **fields))


def sandbox(of: Pod, attempt: int = 0, **fields: Any) -> SandboxStatus:
    made = SandboxStatus(
        id=f"sandbox-{attempt}",
        name=f"sandbox-{attempt}",
        infra_id=f"infra-{attempt}",
        attempt=attempt,
        state=SandboxState.READY,
        hash=sandbox_hash(of),
        host_network=of.spec.host_network,
        resources=resizable_part(of.spec.resources),
    )
    return msgspec.structs.replace(made, **fields)


def seen(of: Pod, name: str, state: ContainerState, attempt: int = 0, **fields: Any) -> RuntimeContainerStatus:
    """A container of that name, made from the pod's present definition, in its first sandbox."""
    found = find_container(of.spec, name)
    made = RuntimeContainerStatus(
        id=f"{name}-{attempt}",
        name=name,
        attempt=attempt,
        state=state,
        sandbox_id="sandbox-0",
        hash=container_hash(found.container, found.kind) if found else "of no container",
        image=IMAGE,
        pid=1000 + attempt if state is ContainerState.RUNNING else 0,
        resources=resizable_part(found.container.resources if found else None),
    )
    return msgspec.structs.replace(made, **fields)


def observed(
    of: Pod, *containers: RuntimeContainerStatus, sandboxes: tuple[SandboxStatus, ...] | None = None
) -> RuntimePodStatus:
    """As the observer sorts it: newest first."""
    return RuntimePodStatus(
        uid=of.metadata.uid,
        name=of.metadata.name,
        namespace=of.metadata.namespace,
        sandboxes=(sandbox(of),) if sandboxes is None else sandboxes,
        containers=tuple(sorted(containers, key=lambda c: (c.name, -c.attempt))),
    )
