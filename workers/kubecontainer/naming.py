"""Deterministic names: what was interrupted half way is met again under the same name instead of being made twice."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from ipc.k8s.api.v1.pod import Pod
from workers.kubecontainer.labels import ContainerLabels, PodLabels, SandboxLabels

UID_CHARS: Final = 8
"""How much of the UID goes into a name."""

_UUID_HEAD: Final = re.compile(r"[0-9a-f]{8}-")


def uid8(uid: str) -> str:
    """The head of a UUID, as people see it elsewhere; of any other UID the head of its SHA-256, so that neither its
    characters nor a common prefix matter."""
    return uid[:UID_CHARS] if _UUID_HEAD.match(uid) else hashlib.sha256(uid.encode()).hexdigest()[:UID_CHARS]


def sandbox_name(pod: Pod, attempt: int) -> str:
    """``<pod>_<namespace>_<uid8>_<attempt>``: the name of the Podman pod. Kubernetes names have no underscore."""
    return _sandbox_name(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid, attempt)


def infra_name(pod: Pod, attempt: int) -> str:
    """The name of the sandbox's infra container; no container's name ends like that."""
    return infra_name_of(sandbox_name(pod, attempt))


def infra_name_of(sandbox: str) -> str:
    """Name of the infra container of a sandbox, from the sandbox's name."""
    return f"{sandbox}_infra"


def container_name(pod: Pod, container: str, attempt: int) -> str:
    """``<container>_<pod>_<namespace>_<uid8>_<attempt>``."""
    return f"{container}_{sandbox_name(pod, attempt)}"


def sandbox_name_of(own: SandboxLabels) -> str:
    """The name that we gave to the Podman pod with these labels, and that no copy of it can have."""
    return _sandbox_name_of(own)


def container_name_of(own: ContainerLabels) -> str:
    """Name of a container, from its labels."""
    return f"{own.name}_{_sandbox_name_of(own)}"


def _sandbox_name_of(own: PodLabels) -> str:
    return _sandbox_name(own.pod_name, own.pod_namespace, own.pod_uid, own.attempt)


def _sandbox_name(pod: str, namespace: str, uid: str, attempt: int) -> str:
    return f"{pod}_{namespace}_{uid8(uid)}_{attempt}"
