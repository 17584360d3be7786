"""The config of a container beside its definition: looked up, and its files made, before the container is.

Mirrors generateContainerConfig and getTargetID (pkg/kubelet/kuberuntime/kuberuntime_container.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ipc.k8s.api.v1.container import Container, EphemeralContainer
from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from workers.compute.types import ContainerStart
from workers.env.downward import PodPlacement
from workers.env.environment import Environment, EnvironmentSources, make_environment, reads_files
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.image_reference import parse_image_reference
from workers.kubecontainer.image_service import ImageInfo
from workers.kubecontainer.mounted_volume import MountedVolume
from workers.kubecontainer.runtime import RuntimeCallError
from workers.kuberuntime.context import NodeConfig
from workers.kuberuntime.etc_files import EtcFileError
from workers.kuberuntime.run_as import find_user
from workers.kuberuntime.runtime_class import find_oci_runtime
from workers.kuberuntime.sandbox import Sandbox
from workers.logs import layout
from workers.logs.termination_message import make_termination_log, termination_log
from workers.network.hostnames import HostnameError, kernel_hostname
from workers.specgen.spec import ContainerConfig
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.run import SyncRun
from workers.volumemanager.first_use import make_new_volumes
from workers.volumemanager.plugins.volume_host import VolumeHost
from workers.volumemanager.prepare import prepare_mounts


class PodInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a pod's containers: each is the result of an earlier step of the sync."""

    of: PodSnapshot
    volumes: Mapping[str, MountedVolume]
    """By name, set up."""
    sandbox: Sandbox


async def generate_container_config(
    run: SyncRun,
    node: NodeConfig,
    host: VolumeHost,
    inputs: PodInputs,
    container: Container,
    start: ContainerStart,
    image: ImageInfo | None,
) -> ContainerConfig:
    """The container's config, its files made. ``image`` is the container's, None when Podman was not asked for it yet.
    Raises ConfigError, SyncEnded."""
    pod = inputs.of.pod
    try:
        oci_runtime = find_oci_runtime(inputs.of, node.runtimes)
        target_pid = await _target_pid(run, inputs.of.status, container)
        environment = await _environment(run, node, host, inputs, container)
        user = await find_user(run, pod, container, image)
        volumes = await make_new_volumes(run, host, inputs.of, container, inputs.volumes, user, image)
        mounts = await prepare_mounts(run, host, pod, container, volumes, environment)
        termination_log = _termination_log(host.pods_dir, run.pod.uid, container, start.attempt)
        files = await inputs.sandbox.etc_files.written()
        hostname = "" if pod.spec.host_network else kernel_hostname(pod, node.network.cluster_domain)
    except RuntimeCallError as error:
        raise ConfigError(error.message) from error
    except (EtcFileError, HostnameError) as error:
        raise ConfigError(str(error)) from error
    return ContainerConfig(
        ownership=node.ownership,
        sandbox_id=inputs.sandbox.id,
        image=str(parse_image_reference(container.image)),
        attempt=start.attempt,
        backoff_s=start.backoff_s,
        log_file=layout.log_file(node.logs(run.pod), container.name, start.attempt),
        hostname=hostname,
        environment=environment,
        mounts=mounts,
        files=files,
        node=node.resources,
        devices=inputs.of.devices.get(container.name, {}),
        known_devices=inputs.of.known_devices,
        oci_runtime=oci_runtime,
        user=user,
        seccomp=node.seccomp,
        termination_log=termination_log,
        target_pid=target_pid,
    )


async def _environment(
    run: SyncRun, node: NodeConfig, host: VolumeHost, inputs: PodInputs, container: Container
) -> Environment:
    """Raises ConfigError."""
    subject = f"environment of {container.name}"
    sources = EnvironmentSources(
        pod=inputs.of.pod,
        objects=inputs.of.objects,
        where=PodPlacement(
            node_name=node.name,
            host_ips=node.host_ips(),
            pod_ips=inputs.sandbox.network.ips,
        ),
        node=node.resources,
        volumes=inputs.volumes,
        unshare=host.unshare,
    )
    if not reads_files(container):
        return make_environment(container, sources)
    try:
        return await run.in_files(subject, make_environment, container, sources)
    except TimeoutError as error:
        raise ConfigError(f"{subject}: {error.strerror}") from error


def _termination_log(pods_dir: str, uid: str, container: Container, attempt: int) -> Path | None:
    """The container's file, made anew; None when it has none. Raises ConfigError."""
    if not (container.termination_message_path and pods_dir):
        return None
    file = termination_log(pods_dir, uid, container.name, attempt)
    try:
        make_termination_log(file, attempt)
    except OSError as error:
        raise ConfigError(f"termination log: {error}") from error
    return file


async def _target_pid(run: SyncRun, status: RuntimePodStatus, container: Container) -> int:
    """The process whose PID namespace an ephemeral container shares (getTargetID); 0 for all others.

    Looked up now and not in the status: this sync may have stopped it. Raises ConfigError, RuntimeCallError, SyncEnded.
    """
    name = container.target_container_name if isinstance(container, EphemeralContainer) else ""
    if not name:
        return 0
    target = status.newest(name)
    found = await run.find(run.runtime.inspect_container, target.id) if target is not None else None
    if found is None:
        raise ConfigError(f"unable to find target container {name}")
    if found.state != "running" or not found.pid:
        raise ConfigError(f"target container {name} is not running")
    return found.pid
