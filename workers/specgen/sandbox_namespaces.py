"""A sandbox's network, host name and namespaces, as fields of libpod's PodSpecGenerator. Pure.

Mirrors generatePodSandboxConfig (pkg/kubelet/kuberuntime/kuberuntime_sandbox.go) and NamespacesForPod
(pkg/kubelet/kuberuntime/util/util.go).
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.network.network_settings import BRIDGE, NetworkSettings
from ipc.k8s.network.ports import PortMapping
from workers.network.hostnames import kernel_hostname, pod_names, truncate_hostname

_HOST: Final = {"nsmode": "host"}


def sandbox_namespaces(pod: Pod, settings: NetworkSettings) -> JsonObject:
    """Fields of a PodSpecGenerator. Raises HostnameError.

    Podman keeps no hosts file: the pod's is ours (`workers.network.etc_mounts`).
    """
    network = _hosts_network(pod) if pod.spec.host_network else _own_network(pod, settings)
    return {"shared_namespaces": _shared(pod), "no_manage_hosts": True, **network}


def container_namespaces(pod: Pod, target_pid: int) -> JsonObject:
    """Fields of a SpecGenerator: what a container does not have from its sandbox.

    ``target_pid`` is that of a process whose PID namespace it shares, by its path, as CRI runtimes do; 0 gives it one
    of its own. Named by its container instead, the other one would be a dependency for Podman: started with this one
    when it has ended, and not removable before this one. A pod with one PID namespace has no other to share.
    """
    namespaces: dict[str, object] = {"ipcns": _HOST} if pod.spec.host_ipc else {}
    if pod.spec.host_pid:
        return {**namespaces, "pidns": _HOST}
    if target_pid and not leaves_processes(pod):
        return {**namespaces, "pidns": {"nsmode": "path", "value": f"/proc/{target_pid}/ns/pid"}}
    return namespaces


def leaves_processes(pod: Pod, target_pid: int = 0) -> bool:
    """Whether a container's first process is not the first one of its PID namespace. ``target_pid`` as above."""
    return pod.spec.host_pid or bool(pod.spec.share_process_namespace) or target_pid > 0


def _shared(pod: Pod) -> list[str]:
    """Namespaces that sandbox and containers share. Without a UTS namespace the pod has the node's host name."""
    spec = pod.spec
    shared = {
        "ipc": not spec.host_ipc,
        "net": True,
        "uts": not spec.host_network,
        "pid": bool(spec.share_process_namespace) and not spec.host_pid,
    }
    return [name for name, is_shared in shared.items() if is_shared]


def _hosts_network(pod: Pod) -> dict[str, object]:
    """The host name is that of the infra container alone, which nobody sees. Without one Podman gives it the name of
    the sandbox, and the kernel refuses a long one."""
    return {"netns": _HOST, "hostname": truncate_hostname(pod.metadata.name)}


def _own_network(pod: Pod, settings: NetworkSettings) -> dict[str, object]:
    return {
        "hostname": kernel_hostname(pod, settings.cluster_domain),
        "portmappings": [
            {**msgspec.to_builtins(mapping), "protocol": mapping.protocol.lower()} for mapping in published_ports(pod)
        ],
        **_mode(pod, settings),
    }


def _mode(pod: Pod, settings: NetworkSettings) -> dict[str, object]:
    if not settings.mode:
        return {}
    netns: dict[str, object] = {"netns": {"nsmode": settings.mode}}
    if settings.mode != BRIDGE or not settings.bridge:
        return netns
    return {**netns, "Networks": {settings.bridge: {"aliases": _aliases(pod, settings)}}}


def _aliases(pod: Pod, settings: NetworkSettings) -> list[str]:
    """Name by which other pods on the bridge resolve it."""
    names = pod_names(pod, settings.cluster_domain)
    return list(dict.fromkeys((names.hostname, names.fqdn)))


def published_ports(pod: Pod) -> tuple[PortMapping, ...]:
    """Ports of the host from which Podman leads to that pod; none in the host's network, where containers listen."""
    if pod.spec.host_network:
        return ()
    return tuple(m for c in pod.spec.containers for m in make_port_mappings(c) if m.host_port)


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
