"""A sandbox's network, host name and namespaces, in libpod's words. Pure.

Mirrors generatePodSandboxConfig (pkg/kubelet/kuberuntime/kuberuntime_sandbox.go) and NamespacesForPod
(pkg/kubelet/kuberuntime/util/util.go).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ipc.api import Container, Pod

MAX_HOSTNAME_CHARS: Final = 63
"""pkg/kubelet/kubelet_pods.go, truncatePodHostnameIfNeeded."""


class PortMapping(msgspec.Struct, frozen=True, kw_only=True):
    """A container's port and where the host publishes it (pkg/kubelet/container/runtime.go, PortMapping)."""

    container_port: int
    host_port: int
    host_ip: str
    protocol: str


def sandbox_namespaces(pod: Pod) -> dict[str, Any]:
    """Fields of a PodSpecGenerator."""
    return dict(_HOST_NETWORK) if pod.spec.host_network else _own_network(pod)


# Without a UTS namespace of its own the pod has the node's host name, as upstream.
_HOST_NETWORK: Final = {"netns": {"nsmode": "host"}, "shared_namespaces": ["ipc", "net"]}


def _own_network(pod: Pod) -> dict[str, Any]:
    published = [m for c in pod.spec.containers for m in make_port_mappings(c) if m.host_port]
    return {
        "shared_namespaces": ["ipc", "net", "uts"],
        "hostname": truncate_hostname(pod.spec.hostname or pod.metadata.name),
        "portmappings": [
            {**msgspec.to_builtins(mapping), "protocol": mapping.protocol.lower()} for mapping in published
        ],
    }


def make_port_mappings(container: Container) -> tuple[PortMapping, ...]:
    """pkg/kubelet/container/helpers.go, MakePortMappings: of two ports with one name, or else with the same address
    family, protocol, host address and numbers, the first one counts."""
    by_key: dict[str, PortMapping] = {}
    for port in container.ports:
        family = "any" if not port.host_ip else "v6" if ":" in port.host_ip else "v4"
        key = port.name or f"{family}-{port.protocol}-{port.host_ip}:{port.container_port}:{port.host_port}"
        mapping = PortMapping(
            container_port=port.container_port,
            host_port=port.host_port,
            host_ip=port.host_ip,
            protocol=port.protocol or "TCP",
        )
        by_key.setdefault(key, mapping)
    return tuple(by_key.values())


def truncate_hostname(name: str) -> str:
    """At most MAX_HOSTNAME_CHARS, ending neither in a hyphen nor in a dot."""
    return name if len(name) <= MAX_HOSTNAME_CHARS else name[:MAX_HOSTNAME_CHARS].rstrip("-.")
