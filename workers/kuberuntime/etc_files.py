"""A pod's hosts file and resolv.conf, written for its containers, and events about their problems.

Mirrors what getPodDNSConfig, ensureHostsFile and their callers do (pkg/kubelet/network/dns/dns.go,
pkg/kubelet/kubelet_pods.go). Different on purpose: the MissingClusterDNS event is the pod's only; upstream also sends
one of the node, with every pod.
"""

from __future__ import annotations

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.network.network_settings import NetworkSettings
from ipc.link.messages import event_reasons
from workers.kubecontainer.runtime import RuntimeCallError
from workers.network import dns, etc_mounts
from workers.network.etc_mounts import PodFile
from workers.network.hostnames import HostnameError
from workers.network.sandbox_network import SandboxNetwork
from workers.sync.run import SyncRun


class EtcFileError(Exception):
    """One of the files cannot be made; the text is for people."""


class EtcFiles:
    """The files of one pod that its containers see in /etc, by the network of the sandbox that they are started in.

    They are written when the first container of a sync needs them, and then the same for all others of that sync.
    """

    def __init__(
        self, run: SyncRun, pods_dir: str, settings: NetworkSettings, pod: Pod, network: SandboxNetwork
    ) -> None:
        self._run = run
        self._pods_dir = pods_dir
        self._settings = settings
        self._pod = pod
        self._network = network
        self._resolv_conf = network.resolv_conf
        self._written: tuple[PodFile, ...] | None = None

    async def report_problems(self) -> None:
        """Send an event for each thing that is wrong with how the pod resolves names.

        Raises RuntimeCallError, SyncEnded, OSError.
        """
        if dns.misses_cluster_dns(self._pod, self._settings):
            await self._run.event(
                event_reasons.MISSING_CLUSTER_DNS, dns.missing_cluster_dns_message(self._pod, self._settings)
            )
        if not self._is_podmans():
            for problem in (await self._formed()).problems:
                await self._run.event(event_reasons.DNS_CONFIG_FORMING, problem)

    async def written(self) -> tuple[PodFile, ...]:
        """The files as they are to be now, written once in a sync. Raises EtcFileError, SyncEnded."""
        if self._written is None:
            try:
                self._written = await self._write()
            except (OSError, RuntimeCallError, HostnameError) as error:
                raise EtcFileError(f"files in /etc: {error}") from error
        return self._written

    def refresh(self) -> None:
        """Tell containers that run of changed host aliases. Raises EtcFileError."""
        if not (self._pods_dir and self._network.ips):
            return
        try:
            if etc_mounts.refresh_hosts(self._pods_dir, self._run.pod.uid, self._hosts_text()):
                self._run.record.did("wrote the hosts file")
        except (OSError, HostnameError) as error:
            raise EtcFileError(f"files in /etc: {error}") from error

    async def _write(self) -> tuple[PodFile, ...]:
        pods_dir, uid = self._pods_dir, self._run.pod.uid
        if not pods_dir:
            return ()
        hosts = etc_mounts.write_hosts(pods_dir, uid, self._hosts_text())
        if self._is_podmans():
            return (hosts,)
        return hosts, etc_mounts.write_resolv_conf(pods_dir, uid, (await self._formed()).resolver)

    def _hosts_text(self) -> str:
        return etc_mounts.hosts_text(self._pod, self._network.ips, self._settings)

    async def _formed(self) -> dns.FormedResolver:
        if dns.needs_podmans(self._pod, self._settings):
            podmans = etc_mounts.resolver_of(await self._podmans_resolv_conf())
            base = dns.podmans_dns(self._pod, podmans, etc_mounts.hosts_resolver())
        else:
            base = etc_mounts.resolver_of(self._settings.resolv_conf)
        return dns.pod_dns(self._pod, self._settings, base)

    def _is_podmans(self) -> bool:
        """Raises OSError."""
        return dns.is_podmans(self._pod, self._settings, etc_mounts.hosts_resolver())

    async def _podmans_resolv_conf(self) -> str:
        """Path of the sandbox's resolv.conf, asked for once. Raises RuntimeCallError, SyncEnded."""
        if self._resolv_conf is None:
            infra = await self._run.read(self._run.runtime.inspect_container, self._network.infra)
            self._resolv_conf = infra.resolv_conf
        return self._resolv_conf
