"""Environment variables that name services (pkg/kubelet/envvars/envvars.go, getServiceEnvVarMap in
pkg/kubelet/kubelet_pods.go). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

MASTER_NAMESPACE: Final = "default"
MASTER_SERVICE: Final = "kubernetes"
"""The service that every pod is told of."""
HEADLESS: Final = "None"


class ServicePort(msgspec.Struct, frozen=True):
    """A port of a service, as far as variables tell it."""

    port: int
    name: str = ""
    protocol: str = "TCP"


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Where a service is reached."""

    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    """``None`` or empty: nowhere of its own."""
    ports: tuple[ServicePort, ...] = ()


class ServiceMeta(msgspec.Struct, frozen=True):
    """Name of the service."""

    name: str
    namespace: str


class Service(msgspec.Struct, frozen=True):
    """A core/v1 Service, as far as variables tell it."""

    metadata: ServiceMeta
    spec: ServiceSpec = ServiceSpec()

    @property
    def has_address(self) -> bool:
        return self.spec.cluster_ip not in ("", HEADLESS)


def master_service(address: str, port: int) -> Service:
    """The master service at an address that the operator says, where nothing forwards that of the cluster."""
    spec = ServiceSpec(cluster_ip=address, ports=(ServicePort(port=port, name="https"),))
    return Service(metadata=ServiceMeta(name=MASTER_SERVICE, namespace=MASTER_NAMESPACE), spec=spec)


def service_variables(services: Iterable[Service], namespace: str, *, links: bool) -> dict[str, str]:
    """Variables of a pod in that namespace: of the master service, and with ``links`` of its namespace's others."""
    seen: dict[str, Service] = {}
    for service in services:
        name = service.metadata.name
        if not service.has_address:
            continue
        if service.metadata.namespace == MASTER_NAMESPACE and name == MASTER_SERVICE:
            seen.setdefault(name, service)
        elif service.metadata.namespace == namespace and links:
            seen[name] = service
    return {name: value for service in seen.values() for name, value in _of(service)}


def _of(service: Service) -> Iterator[tuple[str, str]]:
    """FromServices."""
    prefix, address, ports = _variable(service.metadata.name), service.spec.cluster_ip, service.spec.ports
    yield f"{prefix}_SERVICE_HOST", address
    if ports:
        yield f"{prefix}_SERVICE_PORT", str(ports[0].port)
    for port in ports:
        if port.name:
            yield f"{prefix}_SERVICE_PORT_{_variable(port.name)}", str(port.port)
    for index, port in enumerate(ports):
        protocol = (port.protocol or "TCP").lower()
        host = f"[{address}]" if ":" in address else address
        url = f"{protocol}://{host}:{port.port}"
        if index == 0:
            yield f"{prefix}_PORT", url
        of_port = f"{prefix}_PORT_{port.port}_{protocol.upper()}"
        yield of_port, url
        yield f"{of_port}_PROTO", protocol
        yield f"{of_port}_PORT", str(port.port)
        yield f"{of_port}_ADDR", address


def _variable(name: str) -> str:
    return name.replace("-", "_").upper()
