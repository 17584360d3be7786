"""What a container gets beside its definition, found out and made ready before it is made.

Mirrors generateContainerConfig and getTargetID (pkg/kubelet/kuberuntime/kuberuntime_container.go).
"""

from __future__ import annotations

from pathlib import Path

from ipc.api.v1.container import Container, EphemeralContainer
from ipc.api.v1.pod import Pod
from workers.compute.types import ContainerStart
from workers.env.downward import Whereabouts
from workers.env.environment import Environment, EnvironmentSources, make_environment
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.image_reference import parse_image_reference
from workers.kubecontainer.runtime import RuntimeCallError
from workers.kuberuntime.etc_files import EtcFileError, make_etc_files
from workers.kuberuntime.run_as import find_user
from workers.logs import layout
from workers.logs.termination_message import make_termination_log, termination_log
from workers.network.hostnames import HostnameError, kernel_hostname
from workers.specgen.spec import ContainerConfig
from workers.sync.context import SyncRun
from workers.volumemanager.prepare import prepare_mounts


async def generate_container_config(
    run: SyncRun, pod: Pod, container: Container, start: ContainerStart, sandbox_id: str
) -> ContainerConfig:
    """Its files are there then. Raises ConfigError, SyncEnded."""
    try:
        return await _generate_container_config(run, pod, container, start, sandbox_id)
    except RuntimeCallError as error:
        raise ConfigError(error.message) from error
    except (EtcFileError, HostnameError) as error:
        raise ConfigError(str(error)) from error


async def _generate_container_config(
    run: SyncRun, pod: Pod, container: Container, start: ContainerStart, sandbox_id: str
) -> ContainerConfig:
    target_pid = await _target_pid(run, container)
    environment = await _environment(run, pod, container)
    mounts = await prepare_mounts(run, pod, container, environment)
    user = await find_user(run, pod, container)
    termination_log = _termination_log(run, container, start.attempt)
    files = await make_etc_files(run, pod)
    hostname = "" if pod.spec.host_network else kernel_hostname(pod, run.context.network.cluster_domain)
    return ContainerConfig(
        ownership=run.context.ownership,
        sandbox_id=sandbox_id,
        image=str(parse_image_reference(container.image)),
        attempt=start.attempt,
        backoff_s=start.backoff_s,
        log_file=layout.log_file(run.logs, container.name, start.attempt),
        hostname=hostname,
        environment=environment,
        mounts=mounts,
        files=files,
        node=run.context.node,
        user=user,
        seccomp=run.context.seccomp,
        termination_log=termination_log,
        target_pid=target_pid,
    )


async def _environment(run: SyncRun, pod: Pod, container: Container) -> Environment:
    """Raises ConfigError."""
    subject = f"environment of {container.name}"
    try:
        return await run.in_files(subject, make_environment, container, _environment_sources(run, pod))
    except TimeoutError as error:
        raise ConfigError(f"{subject}: {error.strerror}") from error


def _environment_sources(run: SyncRun, pod: Pod) -> EnvironmentSources:
    """What variables of every container of the pod may refer to (determinePodSandboxIPs, kuberuntime_sandbox.go)."""
    context = run.context
    host_ips = (context.host_ip,) if context.host_ip else ()
    return EnvironmentSources(
        pod=pod,
        objects=run.request.objects,
        where=Whereabouts(node_name=context.node_name, host_ips=host_ips, pod_ips=run.network.ips),
        node=context.node,
        volumes=run.volumes,
        unshare=context.unshare,
    )


def _termination_log(run: SyncRun, container: Container, attempt: int) -> Path | None:
    """The container's file, made anew; None when it has none. Raises ConfigError."""
    if not (container.termination_message_path and run.context.pods_dir):
        return None
    file = termination_log(run.context.pods_dir, run.pod.uid, container.name, attempt)
    try:
        make_termination_log(file, attempt)
    except OSError as error:
        raise ConfigError(f"termination log: {error}") from error
    return file


async def _target_pid(run: SyncRun, container: Container) -> int:
    """The process whose PID namespace an ephemeral container shares (getTargetID); 0 for all others.

    Looked up now and not in the view: this sync may have stopped it. Raises ConfigError, RuntimeCallError, SyncEnded.
    """
    name = container.target_container_name if isinstance(container, EphemeralContainer) else ""
    if not name:
        return 0
    target = run.view.newest(name)
    found = await run.find(run.runtime.inspect_container, target.id) if target is not None else None
    if found is None:
        raise ConfigError(f"unable to find target container {name}")
    if found.state != "running" or not found.pid:
        raise ConfigError(f"target container {name} is not running")
    return found.pid
