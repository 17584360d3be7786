"""The children's part of the settings, and the places that they are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.k8s.kubecontainer.label_key import LabelKey
from ipc.k8s.network.network_settings import NetworkSettings
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.wire.boot import TracingSettings, WorkerSettings
from ipc.link.wire.credential_provider import CredentialProvider
from supervisor.config.resolution.cluster_section import cluster_settings, kubernetes_service
from supervisor.config.resolution.node_thresholds import node_thresholds, pods_memory
from supervisor.config.resolution.server_section import server_settings
from supervisor.config.settings import PODS_DIR, Settings

BEATS_PER_TIMEOUT: Final = 4
"""Heartbeats of a worker within ``workers.heartbeatTimeout``. Each wakes a process that has nothing else to do."""
PULLED_IMAGES_DIR: Final = "pulled-images"
"""Below ``stateDir``: a file per image that was pulled with a pod's login (`workers.images.pull_records`)."""
IMAGE_RECORDS_FILE: Final = "images.json"
"""Below ``stateDir``: when images were seen and used, and which were pulled (`workers.images.image_records`)."""
SECCOMP_DIR: Final = "seccomp"
"""Below ``stateDir``: seccomp profiles of type Localhost, as below the kubelet's root directory."""
INSPECT_FILE: Final = "inspects.msgpack"
"""Below ``memoryDir``: what Podman has said of containers (`workers.containers.inspect_file`)."""
_UNKNOWN_NODE: Final = NodeResources()


def worker_settings(
    settings: Settings,
    podman_socket: str,
    label_key: LabelKey,
    node: NodeResources = _UNKNOWN_NODE,
    podman_environment: Mapping[str, str] = {},
    credential_providers: tuple[CredentialProvider, ...] = (),
    seccomp_profile: str = "",
    *,
    limits_processes: bool = False,
) -> WorkerSettings:
    """The children's part of resolved settings, and what the master has found out for them."""
    api_server = kubernetes_service(settings)
    return WorkerSettings(
        instance=settings.instance_name,
        label_key=label_key,
        node_name=settings.node_name,
        podman_socket=podman_socket,
        podman_path=settings.podman.path,
        podman_options=settings.podman.options,
        podman_forgets=settings.podman.is_transient,
        podman_environment=dict(podman_environment),
        runtimes=settings.runtimes,
        dialer_socket=str(settings.dialer_socket),
        node=node,
        pod_logs_dir=str(settings.pod_logs_dir),
        pods_dir=str(settings.state_dir / PODS_DIR),
        pulled_images_dir=str(settings.state_dir / PULLED_IMAGES_DIR),
        credential_providers=credential_providers,
        image_records_file=str(settings.state_dir / IMAGE_RECORDS_FILE),
        memory_dir=str(settings.memory_dir / PODS_DIR),
        inspect_file=str(settings.memory_dir / INSPECT_FILE),
        seccomp_default=settings.seccomp_default,
        seccomp_dir=str(settings.state_dir / SECCOMP_DIR),
        seccomp_profile=seccomp_profile,
        limits_processes=limits_processes,
        runtime_request_timeout_s=float(settings.runtime_request_timeout_s),
        image_pull_timeout_s=float(settings.image_pull_timeout_s),
        keep_until_images_pulled=settings.keep_until_images_pulled,
        network=NetworkSettings(
            mode=settings.pod_network.mode,
            bridge=settings.pod_network.bridge,
            cluster_dns=settings.cluster_dns,
            cluster_domain=settings.cluster_domain,
            resolv_conf=settings.resolv_conf,
            kubernetes_service_ip=api_server[0] if api_server is not None else "",
        ),
        max_mutations=settings.podman.max_concurrent_mutations,
        relist_period_s=float(settings.relist_period_s),
        quiet_relist_period_s=float(settings.quiet_relist_period_s),
        heartbeat_period_s=float(settings.workers.heartbeat_timeout_s) / BEATS_PER_TIMEOUT,
        idle_timeout_s=float(settings.workers.idle_timeout_s),
        max_container_restart_period_s=float(settings.crash_loop_back_off.max_container_restart_period_s),
        max_pods=settings.max_pods,
        gc=settings.container_garbage_collection.policy,
        thresholds=node_thresholds(settings, node),
        pods_memory=pods_memory(settings, node),
        log_rotation=settings.log_rotation,
        log=settings.logging.target,
        tracing=TracingSettings(
            endpoint=settings.tracing.endpoint, sampling_rate_per_million=settings.tracing.sampling_rate_per_million
        ),
        server=server_settings(settings),
        cluster=cluster_settings(settings),
    )
