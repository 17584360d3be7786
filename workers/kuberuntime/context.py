"""Services and settings that all syncs of one worker share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ipc.k8s.kubecontainer.container_gc import GcPolicy
from ipc.k8s.network.network_settings import NetworkSettings
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.eventloop.backoff import Backoff
from workers.images.manager import ImageManager
from workers.kubecontainer.label_signatures import Ownership
from workers.kuberuntime.bandwidth import BandwidthShaper
from workers.kuberuntime.leftover_processes import SettledEnds
from workers.lifecycle.handlers import HandlerRunner
from workers.logs import layout
from workers.specgen.seccomp import SeccompSettings
from workers.sync.run import PodRef, SyncServices
from workers.volumemanager.plugins.volume_host import VolumeHost


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the node from which sandboxes and containers are made."""

    ownership: Ownership
    pod_logs_dir: str
    name: str = ""
    host_ips: Callable[[], tuple[str, ...]] = tuple
    """The host's addresses as they are now: those of pods in its network."""
    resources: NodeResources = NodeResources()
    network: NetworkSettings = NetworkSettings()
    seccomp: SeccompSettings = SeccompSettings()
    limits: Backoff
    """Limits of the back-off of containers that crash."""
    runtimes: Mapping[str, str] = {}
    """Paths of OCI runtimes by the handlers of RuntimeClasses."""
    gc: GcPolicy = GcPolicy()
    """How many dead containers a pod keeps."""
    keep_until_pulled: bool = True
    """Containers that an edited manifest replaces go on until the images of their successors are there."""

    def logs(self, pod: PodRef) -> Path:
        """The pod's log directory."""
        return layout.pod_directory(self.pod_logs_dir, pod.namespace, pod.name, pod.uid)


class SyncContext(msgspec.Struct, frozen=True, kw_only=True):
    """The services of one worker's syncs. Steps take those that they use (kubeGenericRuntimeManager,
    pkg/kubelet/kuberuntime/kuberuntime_manager.go)."""

    services: SyncServices
    images: ImageManager
    handlers: HandlerRunner
    settled_ends: SettledEnds = msgspec.field(default_factory=SettledEnds)
    volumes: VolumeHost
    shaper: BandwidthShaper = msgspec.field(default_factory=BandwidthShaper)
    node: NodeConfig
