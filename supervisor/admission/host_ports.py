"""The ports of the host that pods take. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod

ANY_ADDRESS: Final = "0.0.0.0"


class HostPort(msgspec.Struct, frozen=True):
    """A port of the host that a pod takes."""

    ip: str
    protocol: str
    port: int

    @property
    def number(self) -> tuple[str, int]:
        """The port on all addresses: those that conflict have the same."""
        return self.protocol, self.port

    def conflicts_with(self, other: HostPort) -> bool:
        """Upstream: HostPortInfo.CheckConflict. Any address takes the port on all of them."""
        same_ip = ANY_ADDRESS in (self.ip, other.ip) or self.ip == other.ip
        return same_ip and self.number == other.number

    def __str__(self) -> str:
        return f"{self.ip}:{self.port}/{self.protocol}"


def host_ports(pod: Pod) -> Iterator[HostPort]:
    """The host ports of the containers that keep running: regular ones and sidecars (nodeports, getContainerPorts)."""
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    for container in (*pod.spec.containers, *sidecars):
        for port in container.ports:
            if port.host_port > 0:
                yield HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
