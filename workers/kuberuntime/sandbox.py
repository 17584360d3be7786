"""The sandbox of a pod: a Podman pod whose infra container runs.

Mirrors createPodSandbox (pkg/kubelet/kuberuntime/kuberuntime_sandbox.go). Upstream's runtime makes a sandbox in one
call; here it takes two, so a half-made one is taken away again, or found not ready by the next sync.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.hashing import sandbox_hash
from ipc.k8s.network.network_settings import BRIDGE
from ipc.link.messages import event_reasons
from ipc.link.messages.pod_worker import SyncAction
from ipc.link.messages.sync_error import SyncError
from ipc.link.metrics import kubelet as metrics
from ipc.link.shm.metric_cells import METERS
from workers.kubecontainer.config_error import ConfigError
from workers.kubecontainer.label_signatures import Ownership
from workers.kubecontainer.labels import read_sandbox
from workers.kubecontainer.look import Look
from workers.kubecontainer.naming import sandbox_name
from workers.kubecontainer.overrides import SAID_TO_RUN
from workers.kubecontainer.runtime import (
    ContainerProcess,
    ErrorKind,
    InspectedContainer,
    InspectedPod,
    RuntimeCallError,
)
from workers.kuberuntime.context import NodeConfig
from workers.kuberuntime.etc_files import EtcFileError, EtcFiles
from workers.kuberuntime.remove import remove_half_made, remove_id
from workers.kuberuntime.runtime_class import find_oci_runtime
from workers.logs import layout
from workers.network.hostnames import HostnameError
from workers.network.sandbox_network import SandboxNetwork, made_network, seen_network
from workers.specgen.sandbox_namespaces import published_ports
from workers.specgen.spec import pod_spec
from workers.sync.pod_snapshot import PodSnapshot
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun

NO_HANDLER: Final = ""
"""Value of ``runtime_handler``: an infra container is made with Podman's own OCI runtime."""
_DURATION: Final = METERS.histogram(metrics.RUN_POD_SANDBOX_DURATION, NO_HANDLER)


class Sandbox(msgspec.Struct, frozen=True):
    """The sandbox in which a sync starts containers."""

    id: str
    network: SandboxNetwork
    etc_files: EtcFiles


async def create_sandbox(run: SyncRun, node: NodeConfig, pods_dir: str, of: PodSnapshot, attempt: int) -> Sandbox:
    """A new sandbox that is ready. Raises SyncEnded, also where the pod's containers would have no OCI runtime."""
    pod = of.pod
    run.step(f"creating sandbox {attempt}")
    began = run.clock.now().mono
    try:
        find_oci_runtime(of, node.runtimes)
        made = await _create_or_adopt(run, node, of, attempt)
        await _start(run, made, pod, both_families=node.network.mode == BRIDGE)
        network = made_network(pod, made.infra, await _look(run, pod, made), node.host_ips())
        etc_files = EtcFiles(run, pods_dir, node.network, pod, network)
        await etc_files.report_problems()
    except (RuntimeCallError, HostnameError, ConfigError, OSError) as error:
        METERS.counter(metrics.RUN_POD_SANDBOX_ERRORS, NO_HANDLER).inc()
        run.checkpoint()
        message = error.message if isinstance(error, RuntimeCallError | ConfigError) else str(error)
        run.record.failed(SyncAction.CREATE_SANDBOX, pod.metadata.name, SyncError.CREATE_POD_SANDBOX, message)
        await run.event(event_reasons.FAILED_CREATE_POD_SANDBOX, f"Failed to create pod sandbox: {message}")
        raise SyncEnded(SyncError.CREATE_POD_SANDBOX, message) from error
    _DURATION.observe(run.clock.now().mono - began)
    run.record.succeeded(SyncAction.CREATE_SANDBOX, pod.metadata.name)
    run.record.did(f"created sandbox {attempt}")
    return Sandbox(made.id, network, etc_files)


def use_sandbox(run: SyncRun, node: NodeConfig, pods_dir: str, of: PodSnapshot, id: str) -> Sandbox:
    """The sandbox that is there; its hosts file is refreshed, and its monitor shows where Podman's files are. Raises
    SyncEnded."""
    for sandbox in of.status.sandboxes:
        if sandbox.id == id and sandbox.infra_monitor_pid:
            run.runtime.learn_from(
                ContainerProcess(container_id=sandbox.infra_id, monitor_pid=sandbox.infra_monitor_pid)
            )
    network = seen_network(of.pod, of.status, id, node.host_ips())
    etc_files = EtcFiles(run, pods_dir, node.network, of.pod, network)
    try:
        etc_files.refresh()
    except EtcFileError as error:
        raise SyncEnded(SyncError.ETC_FILE, str(error)) from error
    return Sandbox(id, network, etc_files)


class _Made(msgspec.Struct, frozen=True):
    """A sandbox that was just made, or adopted."""

    id: str
    infra: str
    """Name of its infra container."""
    pid_file: Path
    """The pid file of its monitor."""
    labels: Mapping[str, str] | None
    """With which it was made; None of an adopted one."""
    is_up: bool = False
    """Whether an adopted one runs, and has its ports of the host already."""


async def _look(run: SyncRun, pod: Pod, made: _Made) -> InspectedContainer | None:
    """The infra container, which has just started; the node worker need not inspect it again.

    None when only an inspect tells of it and its addresses are the host's. Raises RuntimeCallError, SyncEnded.
    """
    at, in_hosts, found = run.clock.now().mono, pod.spec.host_network, None
    if made.labels is not None:
        found = run.runtime.look_at_infra(made.infra, made.id, made.pid_file, made.labels, host_network=in_hosts)
    if found is None and not in_hosts:
        found = await run.read(run.runtime.inspect_container, made.infra)
    if found is not None:
        run.record.looked(made.infra, Look(found, at))
    return found


async def _create_or_adopt(run: SyncRun, node: NodeConfig, of: PodSnapshot, attempt: int) -> _Made:
    """A name in use is met when an earlier create, given up as lost, happened after all, or half of it.

    The pod's log directory is made here, as upstream has it: a name that is too long for it ends here.
    Raises RuntimeCallError, HostnameError, OSError.
    """
    pod = of.pod
    name, pid_file = sandbox_name(pod, attempt), layout.monitor_pid_file(node.logs(run.pod), attempt)
    await run.in_files(layout.SUBJECT, layout.ensure_directory, pid_file)
    spec = pod_spec(pod, node.ownership, attempt, pid_file, node.network, node.resources, of.active_since)
    infra, labels = spec["infra_name"], spec["labels"]
    try:
        return _Made(await run.act(run.runtime.create_pod, spec), infra, pid_file, labels)
    except RuntimeCallError as error:
        if error.kind is not ErrorKind.NAME_IN_USE:
            raise
        found = await run.find(run.runtime.inspect_pod, name)
        if found is not None and not _is_the_same(found, pod, node.ownership):
            raise
    if found is not None and found.infra_id:
        return _Made(found.id, infra, pid_file, None, is_up=dict(found.containers).get(found.infra_id) in SAID_TO_RUN)
    await remove_half_made(run, name, found.id if found is not None else "")
    return _Made(await run.act(run.runtime.create_pod, spec), infra, pid_file, labels)


def _is_the_same(found: InspectedPod, pod: Pod, ownership: Ownership) -> bool:
    own = read_sandbox(found.labels)
    return ownership.owns_pod(found) and (own.pod_uid, own.hash) == (pod.metadata.uid, sandbox_hash(pod))


async def _start(run: SyncRun, made: _Made, pod: Pod, *, both_families: bool) -> None:
    """Start a sandbox by the infra container's name, which we gave: its id would cost another call.

    Ports of the host that somebody else has are found before, because not every forwarder tells of them.
    """
    try:
        ports = () if made.is_up else published_ports(pod)
        if problem := run.runtime.host_port_problem(ports, both_families=both_families):
            raise RuntimeCallError(ErrorKind.INTERNAL, "host ports", problem)
        await run.act(run.runtime.start_container, made.infra)
    except RuntimeCallError:
        await remove_id(run, run.runtime.remove_pod, made.id)
        raise
