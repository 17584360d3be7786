"""From a v1 pod to what Podman makes: the JSON of its PodSpecGenerator and SpecGenerator. Pure.

Every field that Podman would otherwise take from an image or from containers.conf, and that would make it act on its
own (restart, health checks, systemd integration), is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.api import Container, ContainerPort, HostAlias, Pod
from workers import labels
from workers.hashing import container_hash, sandbox_hash
from workers.naming import container_name, infra_name, sandbox_name

MAX_HOSTNAME_CHARS: Final = 63
"""pkg/kubelet/kubelet_pods.go, truncatePodHostnameIfNeeded."""
DEFAULT_GRACE_PERIOD_S: Final = 30
"""For the label of a pod that says none (pkg/apis/core/v1/defaults.go)."""
UNSUPPORTED_DNS_POLICY_SERVERS: Final = ()


class PortMapping(msgspec.Struct, frozen=True, kw_only=True):
    """One published port (pkg/kubelet/container/runtime.go)."""

    container_port: int
    host_port: int
    protocol: str
    host_ip: str


def pod_spec(pod: Pod, instance: str, attempt: int) -> dict[str, Any]:
    """Body of POST pods/create: the sandbox with its infra container."""
    return {
        "name": sandbox_name(pod, attempt),
        "infra_name": infra_name(pod, attempt),
        "labels": sandbox_labels(pod, instance, attempt),
        # The infra container's end must not end the pod's record: the sandbox is judged by us.
        "exit_policy": "continue",
        "shared_namespaces": _shared_namespaces(pod),
        **_network(pod),
        **_dns(pod),
    }
