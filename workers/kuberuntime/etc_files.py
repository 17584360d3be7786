"""What a sync does about its pod's names: looks at a new sandbox's network, writes hosts and resolv.conf, tells of it.

Mirrors what getPodDNSConfig, ensureHostsFile and their callers do (pkg/kubelet/network/dns/dns.go,
pkg/kubelet/kubelet_pods.go). Different on purpose: MissingClusterDNS is told of the pod only, for it says so to the
node with every pod.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ipc.api.v1.pod import Pod
from workers.kubecontainer.runtime import RuntimeCallError
from workers.network import dns, etc_mounts
from workers.network.etc_mounts import PodFile
from workers.network.hostnames import HostnameError
from workers.network.sandbox_network import made_network
from workers.sync.context import WARNING, SyncRun

MISSING_CLUSTER_DNS: Final = "MissingClusterDNS"
DNS_CONFIG_FORMING: Final = "DNSConfigForming"


class EtcFileError(Exception):
    """One of the files cannot be made; the text is for people."""


async def made_sandbox(run: SyncRun, pod: Pod, infra: str) -> None:
    """Look at the network of a sandbox that was just made, and say what is wrong with how its pod resolves names.

    Raises RuntimeCallError, SyncEnded, OSError.
    """
    found = None if pod.spec.host_network else await run.read(run.runtime.inspect_container, infra)
    run.network = made_network(pod, infra, found, run.context.host_ips())
    if dns.misses_cluster_dns(pod, run.context.network):
        await run.event(WARNING, MISSING_CLUSTER_DNS, dns.missing_cluster_dns_message(pod))
    if not dns.is_podmans(pod, run.context.network):
        for problem in (await _formed(run, pod)).problems:
            await run.event(WARNING, DNS_CONFIG_FORMING, problem)


async def make_etc_files(run: SyncRun, pod: Pod) -> tuple[PodFile, ...]:
    """Those that every container of the pod sees, as they are to be now; made once in a sync.

    Raises EtcFileError, SyncEnded.
    """
    if run.etc_files is None:
        try:
            run.etc_files = await _make(run, pod)
        except (OSError, RuntimeCallError, HostnameError) as error:
            raise EtcFileError(f"files in /etc: {error}") from error
    return run.etc_files


def refresh_etc_files(run: SyncRun, pod: Pod) -> None:
    """Tell containers that run of changed host aliases. Raises EtcFileError."""
    if not (run.context.pods_dir and run.network.ips):
        return
    try:
        if etc_mounts.refresh_hosts(run.context.pods_dir, run.pod.uid, _hosts_text(run, pod)):
            run.did("wrote the hosts file")
    except (OSError, HostnameError) as error:
        raise EtcFileError(f"files in /etc: {error}") from error


async def _make(run: SyncRun, pod: Pod) -> tuple[PodFile, ...]:
    pods_dir, uid = run.context.pods_dir, run.pod.uid
    if not pods_dir:
        return ()
    hosts = etc_mounts.write_hosts(pods_dir, uid, _hosts_text(run, pod))
    if dns.is_podmans(pod, run.context.network):
        return (hosts,)
    return hosts, etc_mounts.write_resolv_conf(pods_dir, uid, (await _formed(run, pod)).resolver)


def _hosts_text(run: SyncRun, pod: Pod) -> str:
    return etc_mounts.hosts_text(pod, run.network.ips, run.context.network)


async def _formed(run: SyncRun, pod: Pod) -> dns.FormedResolver:
    settings = run.context.network
    path = await _podmans_resolv_conf(run) if dns.needs_podmans(pod, settings) else settings.resolv_conf
    return dns.pod_dns(pod, settings, etc_mounts.resolver_of(path))


async def _podmans_resolv_conf(run: SyncRun) -> str:
    """Raises RuntimeCallError, SyncEnded."""
    path = run.network.resolv_conf
    if path is None:
        path = (await run.read(run.runtime.inspect_container, run.network.infra)).resolv_conf
        run.network = msgspec.structs.replace(run.network, resolv_conf=path)
    return path
