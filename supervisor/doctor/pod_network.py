"""The network that pods of a cluster are on: what Podman, the host and the cluster say of it, and what that means.

Asked only on a node of a cluster whose pods share a bridge.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final

import msgspec

from ipc.host.atomic_file import UntrustedFile
from ipc.k8s.kubeconfig.client_tls import read_file
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from ipc.k8s.network.network_settings import BRIDGE
from supervisor.config.resolution.cluster_section import kubernetes_service
from supervisor.config.resolution.node_files import node_kubeconfig
from supervisor.config.settings import Settings
from supervisor.doctor.findings import Finding, failed, ok, warning

CONNECT_DEADLINE_S: Final = 3.0
DEFAULT_BRIDGE: Final = "podman"
"""Podman's own network."""
ROUTES: Final = Path("/proc/net/route")
_SUBJECT: Final = "cluster"
_HOW: Final = "docs/cluster.md"
_API_SERVER_HERE: Final = f"{_HOW}, An API server on this host"


class PodNetworkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers about the network."""

    subnets: tuple[str, ...] | None = None
    """Ranges of the bridge; None: Podman has no such network."""
    pod_cidrs: tuple[str, ...] = ()
    """Ranges that the cluster has given to the Node, as far as it has said so."""
    routes: tuple[str, ...] = ()
    """Destinations of the host's routes, but for the default one."""
    api_server_problem: str = ""
    """Why nobody answers at ``cluster.kubernetesService``."""
    api_server_is_here: bool = False
    """Whether that is an address of this host."""


class _NodeSpec(msgspec.Struct, frozen=True, rename="camel"):
    pod_cidrs: tuple[str, ...] = msgspec.field(name="podCIDRs", default=())


class _Node(msgspec.Struct, frozen=True):
    spec: _NodeSpec = _NodeSpec()


def read_pod_network(settings: Settings, list_networks: Callable[[], Any]) -> PodNetworkFacts | None:
    """Blocks. ``list_networks``: Podman's networks, as it prints them. None where nothing has to be asked."""
    if not (settings.cluster.is_configured and settings.pod_network.mode == BRIDGE):
        return None
    name = bridge_name(settings)
    ranges = [_ranges(found) for found in list_networks() or () if found.get("name") == name]
    return PodNetworkFacts(
        subnets=ranges[0] if ranges else None,
        pod_cidrs=_pod_cidrs(settings) if settings.cluster.network_scope == "Cluster" else (),
        routes=_routes(),
        api_server_problem=_api_server_problem(settings),
        api_server_is_here=_is_here(kubernetes_service(settings)),
    )


def bridge_name(settings: Settings) -> str:
    """The network in Podman that pods share."""
    return settings.pod_network.bridge or DEFAULT_BRIDGE


def check_pod_network(found: PodNetworkFacts, settings: Settings, *, by_pasta: bool) -> Iterator[Finding]:
    """Findings about the answers, for the pods of the cluster. ``by_pasta``: bridges have their way out through pasta,
    as with Podman 5 and newer."""
    name = bridge_name(settings)
    if found.subnets is None:
        what = f"podNetwork.bridge: Podman has no network {name}: no pod of its own network starts"
        yield failed(_SUBJECT, what, f"podman network create {name}")
    else:
        yield ok(_SUBJECT, f"pods have addresses of {', '.join(found.subnets) or 'no range'}, network {name}")
        if settings.cluster.network_scope == "Cluster":
            yield from _reached_by_others(found, found.subnets)
    if found.api_server_problem:
        what = f"cluster.kubernetesService: {settings.cluster.kubernetes_service}: {found.api_server_problem}"
        yield warning(_SUBJECT, f"{what}: pods do not find the API server", "name an address at which it answers")
    elif found.api_server_is_here and by_pasta:
        what = f"cluster.kubernetesService: {settings.cluster.kubernetes_service} is this host's own address"
        yield warning(_SUBJECT, f"{what}: pods on a bridge have a copy of it, and are refused there", _API_SERVER_HERE)


def _reached_by_others(found: PodNetworkFacts, subnets: Sequence[str]) -> Iterator[Finding]:
    """networkScope says that pods of other nodes reach those of this one."""
    if found.pod_cidrs and set(found.pod_cidrs).isdisjoint(subnets):
        what = f"the cluster routes {', '.join(found.pod_cidrs)} to this node, and pods have {', '.join(subnets)}"
        yield warning(_SUBJECT, what, f"podman network create --subnet {found.pod_cidrs[0]} NAME; podNetwork.bridge")
    unrouted = [subnet for subnet in subnets if not any(_covers(route, subnet) for route in found.routes)]
    if unrouted and len(unrouted) == len(subnets):
        what = f"networkScope is Cluster, and this host has no route to {', '.join(unrouted)}"
        yield warning(_SUBJECT, f"{what}: only an overlay within Podman's own network namespace gets there", _HOW)


def _covers(route: str, subnet: str) -> bool:
    wide, narrow = ip_network(route), ip_network(subnet, strict=False)
    return isinstance(wide, IPv4Network) and isinstance(narrow, IPv4Network) and narrow.subnet_of(wide)


def _ranges(network: Any) -> tuple[str, ...]:
    return tuple(str(found["subnet"]) for found in network.get("subnets") or () if "subnet" in found)


def _pod_cidrs(settings: Settings) -> tuple[str, ...]:
    """None when the cluster does not say, whyever: what else is wrong with it is told by others."""
    from supervisor.client.cluster import ClusterUnreachable, ask  # brings http.client and email to the master

    path = Path(node_kubeconfig(settings))
    try:
        access = decode_kubeconfig(read_file(str(path)), str(path.parent))
        answer = ask(access, "GET", f"/api/v1/nodes/{settings.node_name}")
        return msgspec.json.decode(answer.body, type=_Node).spec.pod_cidrs if answer.status == 200 else ()
    except (OSError, ValueError, UntrustedFile, ClusterUnreachable):
        return ()


def _api_server_problem(settings: Settings) -> str:
    where = kubernetes_service(settings)
    if where is None:
        return ""
    try:
        with socket.create_connection(where, CONNECT_DEADLINE_S):
            return ""
    except OSError as error:
        return error.strerror or "nobody answers"


def _is_here(where: tuple[str, int] | None) -> bool:
    """Only an address of the host can be bound. Loopback is the pod's own in any case, and is no such copy."""
    if where is None:
        return False
    try:
        address = socket.getaddrinfo(*where, type=socket.SOCK_DGRAM)[0]
        with socket.socket(address[0], socket.SOCK_DGRAM) as bound:
            bound.bind((address[4][0], 0))
    except OSError:
        return False
    return not ip_address(str(address[4][0])).is_loopback


def _routes() -> tuple[str, ...]:
    try:
        return parse_routes(ROUTES.read_text())
    except OSError:
        return ()


def parse_routes(text: str) -> tuple[str, ...]:
    """Destinations of /proc/net/route, but for the default one."""
    lines: Iterable[list[str]] = (line.split() for line in text.splitlines()[1:])
    found = (_network(fields[1], fields[7]) for fields in lines if len(fields) > 7)
    return tuple(str(network) for network in found if network.prefixlen)


def _network(destination: str, mask: str) -> IPv4Network:
    """Network of two numbers in the byte order of the host."""
    address, bits = (int(number, 16).to_bytes(4, "little") for number in (destination, mask))
    return IPv4Network((IPv4Address(address), str(IPv4Address(bits))), strict=False)
