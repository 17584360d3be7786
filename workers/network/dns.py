"""How a pod resolves names. Pure.

Mirrors Configurer.GetPodDNS and what it calls (pkg/kubelet/network/dns/dns.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from ipc.host.text.gofmt import quoted
from ipc.host.text.ip_address import IpAddress
from ipc.k8s.api.v1.pod import Pod, PodDNSConfig, PodDNSConfigOption
from ipc.k8s.network.network_settings import HOSTS_RESOLV_CONF, NetworkSettings
from workers.kubecontainer.event_messages import format_pod

MAX_NAMESERVERS: Final = 3
"""pkg/apis/core/validation/validation.go, MaxDNSNameservers, as the two below."""
MAX_SEARCHES: Final = 32
MAX_SEARCH_LIST_CHARS: Final = 2048
MAX_SEARCH_CHARS: Final = 253
"""Longer ones end old resolvers."""
MAX_RESOLV_CONF_BYTES: Final = 10 << 20
"""Most that is read of a resolv.conf (dns.go, maxResolveConfLength)."""

RESOLVED_STUB: Final = ("127.0.0.53",)
"""The only server where systemd-resolved answers."""
RESOLVED_CONF: Final = "/run/systemd/resolve/resolv.conf"
"""Servers that it asks itself: where it answers, Podman reads these."""
_MADE_UP: Final = frozenset({"8.8.8.8", "8.8.4.4", "2001:4860:4860::8888", "2001:4860:4860::8844"})
"""Servers that Podman writes where it finds none that a pod can reach (libnetwork/resolvconf, filterResolvDNS)."""
_NO_SERVERS: Final = "127.0.0.1"
_CLUSTER_OPTIONS: Final = ("ndots:5",)


class Resolver(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a resolv.conf."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class FormedResolver(msgspec.Struct, frozen=True, kw_only=True):
    """One within the limits, and what was said about bringing it there."""

    resolver: Resolver
    problems: tuple[str, ...] = ()
    """Messages of DNSConfigForming events."""


def misses_cluster_dns(pod: Pod, settings: NetworkSettings) -> bool:
    """Whether the pod gets the policy ``Default`` for lack of a cluster DNS, which needs an event.

    Different on purpose: ClusterFirst is what every pod has that says nothing, and on a host that is in no cluster it
    misses nothing. There only pods that set it explicitly get the event.
    """
    asked = bool(settings.cluster_domain) or pod.spec.dns_policy == "ClusterFirstWithHostNet"
    return asked and _wants_cluster(pod) and not settings.cluster_dns


def missing_cluster_dns_message(pod: Pod, settings: NetworkSettings) -> str:
    """Message of the MissingClusterDNS event: the kubelet's on a node of a cluster."""
    if not settings.cluster_domain:
        return (
            f"pod: {quoted(format_pod(pod))}. Its dnsPolicy asks for a cluster's name servers, and this host is in no "
            'cluster (setting clusterDNS): it has those of the host. Falling back to "Default" policy.'
        )
    return (
        f"pod: {quoted(format_pod(pod))}. kubelet does not have ClusterDNS IP configured and cannot create Pod using "
        '"ClusterFirst" policy. Falling back to "Default" policy.'
    )


def is_podmans(pod: Pod, settings: NetworkSettings, host: Resolver) -> bool:
    """Whether Podman's own resolv.conf is right for the pod: the host's resolver, as it is reached from the pod's
    network. ``host`` has the servers that Podman begins with.

    Podman puts that network's own forwarder in front of the host's servers (slirp4netns has 10.0.2.3, pasta
    169.254.1.1, a bridge its gateway), without which a host whose servers are on its loopback has none here.
    """
    return needs_podmans(pod, settings) and pod.spec.dns_config is None and not _makes_up(pod, host)


def needs_podmans(pod: Pod, settings: NetworkSettings) -> bool:
    """Whether `pod_dns` begins with what Podman has written for the sandbox."""
    return _is_hosts(pod, settings) and settings.resolv_conf == HOSTS_RESOLV_CONF


def podmans_dns(pod: Pod, podmans: Resolver, host: Resolver) -> Resolver:
    """Resolver that Podman has written, without servers that nobody has stated: on a host without a server that
    a pod can reach Podman adds public ones to its forwarder."""
    forwarder = _address(next(iter(podmans.servers), ""))
    if forwarder is None or not forwarder.is_private or not _makes_up(pod, host):
        return podmans
    kept = tuple(server for server in podmans.servers if server not in _MADE_UP or server in host.servers)
    return msgspec.structs.replace(podmans, servers=kept)


def _makes_up(pod: Pod, host: Resolver) -> bool:
    """Whether Podman may have made servers up: it leaves those of a loopback out, and IPv6 where a pod has none."""
    return not pod.spec.host_network and not any(map(_is_reachable, host.servers))


def _is_reachable(server: str) -> bool:
    address = _address(server)
    return address is not None and address.version == 4 and not address.is_loopback


def pod_dns(pod: Pod, settings: NetworkSettings, base: Resolver) -> FormedResolver:
    """``base`` is what ``resolvConf`` says, or what Podman made of it (`needs_podmans`)."""
    resolver = _of_policy(pod, settings, base)
    if pod.spec.dns_config is not None:
        resolver = _appended(resolver, pod.spec.dns_config)
    return _within_limits(resolver)


def parse_resolv_conf(text: str) -> Resolver:
    """Servers add up; of several lines with searches or options the last one counts."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    for line in text.splitlines():
        match line.split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search", *found]:
                searches = tuple(search.removesuffix(".") for search in found)
            case ["options", *found]:
                options = tuple(found)
    return Resolver(servers=tuple(servers), searches=searches, options=options)


def render_resolv_conf(resolver: Resolver) -> str:
    """The file, as CRI's runtimes write it."""
    lines = [f"search {' '.join(resolver.searches)}"] if resolver.searches else []
    lines += [f"nameserver {server}" for server in resolver.servers]
    lines += [f"options {' '.join(resolver.options)}"] if resolver.options else []
    return "".join(f"{line}\n" for line in lines)


def _address(text: str) -> IpAddress | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _wants_cluster(pod: Pod) -> bool:
    """getPodDNSType: without a word ClusterFirst, which means Default in the host's network."""
    policy = pod.spec.dns_policy or "ClusterFirst"
    return policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not pod.spec.host_network)


def _is_hosts(pod: Pod, settings: NetworkSettings) -> bool:
    """Whether the pod's policy comes down to Default."""
    return pod.spec.dns_policy != "None" and not (_wants_cluster(pod) and settings.cluster_dns)


def _of_policy(pod: Pod, settings: NetworkSettings, base: Resolver) -> Resolver:
    if pod.spec.dns_policy == "None":
        return Resolver()
    if not _is_hosts(pod, settings):
        searches = _cluster_searches(pod.metadata.namespace, settings.cluster_domain, base.searches)
        return Resolver(servers=settings.cluster_dns, searches=searches, options=_CLUSTER_OPTIONS)
    if not settings.resolv_conf:
        return Resolver(servers=(_NO_SERVERS,), searches=(".",))
    return base


def _cluster_searches(namespace: str, domain: str, of_host: Sequence[str]) -> tuple[str, ...]:
    """generateSearchesForDNSClusterFirst."""
    if not domain:
        return tuple(of_host)
    return _unique((f"{namespace}.svc.{domain}", f"svc.{domain}", domain, *of_host))


def _appended(resolver: Resolver, config: PodDNSConfig) -> Resolver:
    """appendDNSConfig."""
    return Resolver(
        servers=_unique((*resolver.servers, *config.nameservers)),
        searches=_unique((*resolver.searches, *config.searches)),
        options=_merged_options(resolver.options, config.options),
    )


def _merged_options(options: Iterable[str], more: Iterable[PodDNSConfigOption]) -> tuple[str, ...]:
    """mergeDNSOptions; upstream's order is that of a map, which has none."""
    merged: Mapping[str, str] = dict(option.partition(":")[::2] for option in options) | {
        option.name: option.value or "" for option in more
    }
    return tuple(f"{name}:{value}" if value else name for name, value in merged.items())


def _within_limits(resolver: Resolver) -> FormedResolver:
    """formDNSConfigFitsLimits."""
    problems: list[str] = []
    servers, searches = resolver.servers[:MAX_NAMESERVERS], _search_list(resolver.searches)
    if servers != resolver.servers:
        problems.append(
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
            + " ".join(servers)
        )
    if searches != resolver.searches:
        problems.append(
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
            + " ".join(searches)
        )
    kept = msgspec.structs.replace(resolver, servers=servers, searches=searches)
    return FormedResolver(resolver=kept, problems=tuple(problems))


def _search_list(searches: Sequence[str]) -> tuple[str, ...]:
    """formDNSSearchFitsLimits: the first ones, as many as fit."""
    kept = [search for search in searches[:MAX_SEARCHES] if len(search) <= MAX_SEARCH_CHARS]
    while len(" ".join(kept)) > MAX_SEARCH_LIST_CHARS:
        kept.pop()
    return tuple(kept)


def _unique(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))
