"""Deterministic names: what was interrupted half way is met again under the same name instead of being made twice."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from ipc.api import Pod

UID_CHARS: Final = 8
"""How much of the UID goes into a name."""

_UUID_HEAD: Final = re.compile(r"[0-9a-f]{8}-")


def uid8(uid: str) -> str:
    """The head of a UUID, as people see it elsewhere; of any other UID the head of its SHA-256, so that neither its
    characters nor a common prefix matter."""
    return uid[:UID_CHARS] if _UUID_HEAD.match(uid) else hashlib.sha256(uid.encode()).hexdigest()[:UID_CHARS]


def sandbox_name(pod: Pod, attempt: int) -> str:
    """``<pod>_<namespace>_<uid8>_<attempt>``: the name of the Podman pod. Kubernetes names have no underscore."""
    return f"{pod.metadata.name}_{pod.metadata.namespace}_{uid8(pod.metadata.uid)}_{attempt}"


def infra_name(pod: Pod, attempt: int) -> str:
    """The name of the sandbox's infra container; no container's name ends like that."""
    return f"{sandbox_name(pod, attempt)}_infra"


def container_name(pod: Pod, container: str, attempt: int) -> str:
    """``<container>_<pod>_<namespace>_<uid8>_<attempt>``."""
    return f"{container}_{sandbox_name(pod, attempt)}"
