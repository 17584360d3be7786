"""From a v1 pod to what Podman makes: the JSON of its PodSpecGenerator and SpecGenerator. Pure.

What would make Podman act on its own (its restart policy, an image's health check, systemd integration) is switched
off here for every container.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypedDict

import msgspec

from ipc.host.text.json_types import JsonObject
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.probe import LifecycleHandler
from ipc.k8s.kubecontainer.hashing import hash_in, sandbox_hash
from ipc.k8s.network.network_settings import NetworkSettings
from ipc.k8s.podresources.allocation import resizable_part
from ipc.k8s.podresources.devices import Devices
from ipc.k8s.podresources.node_resources import NodeResources
from workers.env.expansion import expand_all
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.labels import DEFAULT_GRACE_PERIOD_S, ContainerLabels, SandboxLabels, write
from workers.kubecontainer.naming import container_name, infra_name, sandbox_name
from workers.kubecontainer.runtime import OciMount
from workers.network.etc_mounts import PodFile, file_mount, mounted_files
from workers.podhttp.hook_ports import with_port_number
from workers.proc.container_tags import container_tag
from workers.proc.signal_names import signal_number
from workers.specgen.container_resources import container_parent, container_resources, sandbox_resources
from workers.specgen.devices import device_edits, device_mounts, device_names, with_device_env
from workers.specgen.mounts import Mounts
from workers.specgen.sandbox_namespaces import container_namespaces, leaves_processes, sandbox_namespaces
from workers.specgen.seccomp import SeccompSettings
from workers.specgen.security_context import container_security, sandbox_security

MAX_LOG_BYTES: Final = 1 << 62
"""Never reached. Without a size ``log_size_max`` of containers.conf would count, at which conmon throws a log away."""
_PODMANS_CHOICE: Final = NetworkSettings()
_UNKNOWN_NODE: Final = NodeResources()


# --- the sandbox -------------------------------------------------------------------------------------------------


def pod_spec(
    pod: Pod,
    ownership: Ownership,
    attempt: int,
    monitor_pid_file: Path,
    network: NetworkSettings = _PODMANS_CHOICE,
    node: NodeResources = _UNKNOWN_NODE,
    active_since: str = "",
) -> JsonObject:
    """Body of POST pods/create: the sandbox, whose infra container holds its namespaces. Raises HostnameError.

    By the pid file the monitor is found (`workers.podman_files.started_look`); its path on the monitor's command line
    identifies the agent (`workers.podman_files.orphaned_monitors`).
    """
    name = sandbox_name(pod, attempt)
    return {
        "name": name,
        "infra_name": infra_name(pod, attempt),
        "infra_conmon_pid_file": str(monitor_pid_file),
        "labels": ownership.signed_sandbox(
            name, write(_sandbox_labels(pod, ownership.instance, attempt, active_since))
        ),
        # Podman must not stop the sandbox when its last container ends: that is our decision.
        "exit_policy": "continue",
        **sandbox_namespaces(pod, network),
        **sandbox_security(pod),
        **sandbox_resources(pod, node),
    }


def _sandbox_labels(pod: Pod, instance: str, attempt: int, active_since: str) -> SandboxLabels:
    return SandboxLabels(
        **_pod_labels(pod, instance),
        hash=sandbox_hash(pod),
        attempt=attempt,
        host_network=pod.spec.host_network,
        resources=resizable_part(pod.spec.resources),
        active_since=active_since if pod.spec.active_deadline_seconds is not None else "",
    )


class _PodLabels(TypedDict):
    """Labels that the sandbox and the containers of a pod have alike."""

    instance: str
    pod_name: str
    pod_namespace: str
    pod_uid: str
    grace_period_s: int


def _pod_labels(pod: Pod, instance: str) -> _PodLabels:
    grace_period_s = pod.spec.termination_grace_period_seconds
    return {
        "instance": instance,
        "pod_name": pod.metadata.name,
        "pod_namespace": pod.metadata.namespace,
        "pod_uid": pod.metadata.uid,
        "grace_period_s": DEFAULT_GRACE_PERIOD_S if grace_period_s is None else grace_period_s,
    }


# --- containers --------------------------------------------------------------------------------------------------


class ContainerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Config of a container beside its manifest, known when it is made (generateContainerConfig)."""

    ownership: Ownership
    sandbox_id: str
    image: str
    """Complete reference: Podman must not resolve short names."""
    image_volumes: Mapping[str, str] = {}
    """Images that it sees as volumes, by the volume's name (`RuntimeContainerStatus.image_volumes`)."""
    attempt: int
    backoff_s: float
    log_file: Path
    hostname: str = ""
    """The sandbox's; empty when that has the host's."""
    environment: Mapping[str, str] = {}
    mounts: Mounts = Mounts()
    files: tuple[PodFile, ...] = ()
    """Files that all containers of the pod see in /etc."""
    node: NodeResources = NodeResources()
    devices: Mapping[str, tuple[str, ...]] = {}
    """Names of the devices that it is given, by extended resource."""
    known_devices: Devices = {}
    oci_runtime: str = ""
    """Path of the OCI runtime that is to run it; empty: Podman's."""
    user: str = ""
    """User and group (`workers.specgen.container_user`); empty leaves them to the image."""
    seccomp: SeccompSettings = SeccompSettings()
    termination_log: Path | None = None
    """File on the host for the container's termination message."""
    target_pid: int = 0
    """Pid on the host of the process whose PID namespace it shares; 0 gives it one of its own, or the pod's."""


def container_spec(pod: Pod, container: Container, config: ContainerConfig) -> JsonObject:
    """Body of POST containers/create.

    Podman adds the environment of the image below that of the config. Raises ConfigError.
    """
    name = container_name(pod, container.name, config.attempt)
    edits = device_edits(container, config.devices, config.known_devices)
    return {
        "name": name,
        "pod": config.sandbox_id,
        "image": config.image,
        "labels": config.ownership.signed_container(name, write(_container_labels(pod, container, config))),
        "env": with_device_env(config.environment, edits),
        "terminal": container.tty,
        "stdin": container.stdin,
        "log_configuration": {"driver": "k8s-file", "path": str(config.log_file), "size": MAX_LOG_BYTES},
        **_given(
            **_process(container, config),
            work_dir=container.working_dir,
            mounts=[*_binds(container, config), *device_mounts(edits)],
            devices=device_names(edits),
            # Podman's API does not act on it: `workers.oci_runtimes` does.
            oci_runtime=config.oci_runtime,
            volumes=config.mounts.volumes,
            image_volumes=config.mounts.image_volumes,
        ),
        **({"create_working_dir": True} if container.working_dir else {}),  # as runc, containerd and CRI-O do
        **_stop_signal(container),
        **container_namespaces(pod, config.target_pid),
        **_process_tag(pod, container, config),
        **container_security(pod, container, config.user, config.seccomp),
        **_host_name(config),
        **container_resources(pod, container, config.node),
        **container_parent(pod, config.node),
        **_NO_ACTIONS_OF_PODMAN,
    }


def _process(container: Container, config: ContainerConfig) -> dict[str, list[str]]:
    """``command`` replaces the image's ENTRYPOINT and with it its CMD; ``args`` alone replace CMD: Podman's entrypoint
    and command do the same. But for an entrypoint of one empty word, which Podman takes for none: it would run the
    first argument."""
    command = expand_all(container.command, config.environment, "command")
    args = expand_all(container.args, config.environment, "args")
    if command == [""]:
        return {"entrypoint": command + args, "command": []}
    return {"entrypoint": command, "command": args}


def _binds(container: Container, config: ContainerConfig) -> list[OciMount]:
    """``Z`` is for hosts with SELinux: the file is for this container alone."""
    binds = [*config.mounts.binds, *mounted_files(container, config.files)]
    if config.termination_log is None:
        return binds
    return [*binds, file_mount(config.termination_log, container.termination_message_path, "Z")]


def _stop_signal(container: Container) -> dict[str, int]:
    """The lifecycle's stop signal, as a number; without one the image's counts."""
    name = container.lifecycle.stop_signal if container.lifecycle is not None else None
    return {"stop_signal": signal_number(name)} if name else {}


def _host_name(config: ContainerConfig) -> dict[str, object]:
    """In a UTS namespace of the container's own: to those that share one Podman gives a HOSTNAME that wins over
    the manifest's and the image's, with which many a server says where it listens."""
    return {"utsns": {"nsmode": "private"}, "hostname": config.hostname} if config.hostname else {}


_NS_PER_S: Final = 10**9
_NO_ACTIONS_OF_PODMAN: Final = {
    "restart_policy": "no",
    # Times of a health check are Podman's defaults: 5.4 checks them whenever limits of the container are changed.
    "healthconfig": {"Test": ["NONE"], "Interval": 30 * _NS_PER_S, "Timeout": 30 * _NS_PER_S, "Retries": 3},
    "sdnotifyMode": "ignore",
    "systemd": "false",
    # For a USER or runAsUser without an entry Podman would add one, and a group of the same number, of which a command
    # that is run later is then a member, but not the container's own process. containerd adds none.
    "manage_password": False,
    # A VOLUME of the image is a directory in the container's own layer (as CRI-O has it): an anonymous volume would
    # take one of Podman's 2048 locks and be left behind by a crash.
    "image_volume_mode": "ignore",
}


def _container_labels(pod: Pod, container: Container, config: ContainerConfig) -> ContainerLabels:
    return ContainerLabels(
        **_pod_labels(pod, config.ownership.instance),
        name=container.name,
        hash=hash_in(pod.spec, container),
        attempt=config.attempt,
        backoff_s=config.backoff_s,
        termination_message_path=container.termination_message_path,
        termination_message_policy=container.termination_message_policy,
        pre_stop=_pre_stop(container),
        leaves_processes=leaves_processes(pod, config.target_pid),
        resources=resizable_part(container.resources),
        devices=config.devices,
        image_volumes=config.image_volumes,
    )


def _process_tag(pod: Pod, container: Container, config: ContainerConfig) -> dict[str, object]:
    """Tag by which the container's processes are known when it has ended."""
    if not leaves_processes(pod, config.target_pid):
        return {}
    return {"r_limits": [container_tag(pod.metadata.uid, container.name, config.attempt).rlimit()]}


def _pre_stop(container: Container) -> LifecycleHandler | None:
    hook = container.lifecycle.pre_stop if container.lifecycle is not None else None
    return with_port_number(hook, container) if hook is not None else None


def _given(**fields: Iterable[object]) -> dict[str, object]:
    """Fields that are not empty; absent ones are the image's."""
    return {name: value if isinstance(value, str) else list(value) for name, value in fields.items() if value}
