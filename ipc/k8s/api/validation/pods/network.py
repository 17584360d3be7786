"""Ports, DNS, hosts file and host names.

Source: pkg/apis/core/validation validateContainerPorts, checkHostPortConflicts, validatePodHostNetworkDeps,
validatePodDNSConfig, ValidateHostAliases, and the hostname rules of ValidatePodSpec.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ipc.k8s.api.errors import duplicate, forbidden, invalid, required, too_many
from ipc.k8s.api.v1.container import Container, ContainerPort
from ipc.k8s.api.v1.pod import HostAlias, PodDNSConfig, PodSpec
from ipc.k8s.api.validation.checks import Errors, if_set, in_range, indexed, unique, well_formed
from ipc.k8s.api.validation.names import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    DNS_SUBDOMAIN_WITH_UNDERSCORE,
    NODE_HOSTNAME,
    PORT_NAME,
    ip_problem,
)
from ipc.k8s.network.ports import MAX_PORT

MAX_DNS_NAMESERVERS: Final = 3
MAX_DNS_SEARCHES: Final = 32
MAX_DNS_SEARCH_LIST_CHARS: Final = 2048


def validate_ports(ports: Sequence[ContainerPort], host_network: bool, path: str) -> Errors:
    """The ports of one container."""
    yield from unique((f"{below}.name", port.name) for below, port in indexed(path, ports))
    for below, port in indexed(path, ports):
        yield from if_set(f"{below}.name", port.name, PORT_NAME.problem)
        yield from in_range(f"{below}.containerPort", port.container_port, 1, MAX_PORT)
        yield from in_range(f"{below}.hostPort", port.host_port, 0, MAX_PORT)
        yield from if_set(f"{below}.hostIP", port.host_ip, ip_problem)
        if host_network and port.host_port not in (0, port.container_port):
            yield invalid(f"{below}.hostPort", port.host_port, "must equal containerPort when hostNetwork is true")


def validate_host_ports(containers: Iterable[tuple[str, Container]]) -> Errors:
    """One host port may be taken once per protocol and address by containers that run at the same time."""
    seen: set[tuple[str, str, int]] = set()
    for path, container in containers:
        for below, port in indexed(f"{path}.ports", container.ports):
            key = (port.protocol or "TCP", port.host_ip, port.host_port)
            if port.host_port and key in seen:
                address = f"{port.host_ip}:" if port.host_ip else ""
                yield duplicate(f"{below}.hostPort", f"{address}{port.host_port}/{key[0]}")
            seen.add(key)


def validate_network(spec: PodSpec, path: str) -> Errors:
    """Everything about names and addresses that is the pod's."""
    yield from _hostname(spec, path)
    yield from _host_aliases(spec.host_aliases, f"{path}.hostAliases")
    yield from _dns(spec, f"{path}.dnsConfig")


def _hostname(spec: PodSpec, path: str) -> Errors:
    yield from if_set(f"{path}.hostname", spec.hostname, DNS_LABEL.problem)
    yield from if_set(f"{path}.subdomain", spec.subdomain, DNS_LABEL.problem)
    if spec.hostname_override is None:
        return
    override = f"{path}.hostnameOverride"
    yield from well_formed(override, spec.hostname_override, NODE_HOSTNAME.problem)
    if spec.host_network:
        yield forbidden(override, "may not be set when hostNetwork is true")
    if spec.set_hostname_as_fqdn:
        yield forbidden(override, "may not be set when setHostnameAsFQDN is true")


def _host_aliases(aliases: Sequence[HostAlias], path: str) -> Errors:
    for below, alias in indexed(path, aliases):
        yield from well_formed(f"{below}.ip", alias.ip, ip_problem)
        for name_path, name in indexed(f"{below}.hostnames", alias.hostnames):
            yield from well_formed(name_path, name, DNS_SUBDOMAIN.problem)


def _dns(spec: PodSpec, path: str) -> Errors:
    config = spec.dns_config
    if spec.dns_policy == "None" and not (config and config.nameservers):
        yield required(f"{path}.nameservers", "must hold at least one when dnsPolicy is None")
    if config is not None:
        yield from _dns_config(config, path)


def _dns_config(config: PodDNSConfig, path: str) -> Errors:
    nameservers, searches = f"{path}.nameservers", f"{path}.searches"
    if len(config.nameservers) > MAX_DNS_NAMESERVERS:
        yield too_many(nameservers, len(config.nameservers), MAX_DNS_NAMESERVERS)
    for below, address in indexed(nameservers, config.nameservers):
        yield from well_formed(below, address, ip_problem)
    if len(config.searches) > MAX_DNS_SEARCHES:
        yield too_many(searches, len(config.searches), MAX_DNS_SEARCHES)
    if len(" ".join(config.searches)) > MAX_DNS_SEARCH_LIST_CHARS:
        detail = f"must not have more than {MAX_DNS_SEARCH_LIST_CHARS} characters with the spaces between"
        yield invalid(searches, config.searches[0], detail)
    for below, search in indexed(searches, config.searches):
        if search != ".":
            yield from well_formed(below, search.removesuffix("."), DNS_SUBDOMAIN_WITH_UNDERSCORE.problem)
    for below, option in indexed(f"{path}.options", config.options):
        if not option.name:
            yield required(f"{below}.name")
