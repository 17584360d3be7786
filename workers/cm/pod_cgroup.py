"""The cgroup of one pod as a sync uses it: a slice that it makes, or where the node has none the one that Podman makes.

Mirrors the pod container manager (pkg/kubelet/cm/pod_container_manager_linux.go: Exists, EnsureExists, Destroy,
GetPodCgroupConfig, SetPodCgroupConfig) as SyncPod and SyncTerminatedPod call it (pkg/kubelet/kubelet.go).
"""

from __future__ import annotations

from typing import Protocol

from ipc.api.v1.pod import Pod
from ipc.kubecontainer.pod_status import SandboxStatus
from ipc.messages import event_reasons
from ipc.messages.sync_error import SyncError
from ipc.podresources.cgroup_config import CgroupConfig
from ipc.podresources.node_resources import NodeResources
from ipc.podresources.pod_cgroups import pod_slice
from workers.kubecontainer.cgroup_reading import CgroupReading
from workers.kubecontainer.runtime import RuntimeCallError
from workers.proc import cgroups
from workers.specgen.container_resources import pod_cgroup_values
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun


def is_missing(run: SyncRun, node: NodeResources, pod: Pod) -> bool:
    """Whether the pod should have a slice and has none."""
    return node.pod_cgroups is not None and not run.runtime.slices.exists(pod_slice(node.pod_cgroups, pod))


async def ensure_exists(run: SyncRun, node: NodeResources, pod: Pod) -> None:
    """Make the pod's slice if it is missing. An event says why that cannot be. Raises SyncEnded."""
    if node.pod_cgroups is None or not is_missing(run, node, pod):
        return
    run.step("making the pod's cgroup")
    run.checkpoint()
    try:
        await run.read(run.runtime.slices.start, pod_slice(node.pod_cgroups, pod), pod_cgroup_values(pod, node))
    except RuntimeCallError as error:
        message = f"unable to ensure pod container exists: {error}"
        await run.event(event_reasons.FAILED_TO_CREATE_POD_CONTAINER, message)
        words = f"failed to ensure that the pod: {run.pod.uid} cgroups exist and are correctly applied: {error}"
        raise SyncEnded(SyncError.POD_CGROUP, words) from error


async def destroy(run: SyncRun, node: NodeResources, pod: Pod) -> None:
    """Stop the slice of a pod of which nothing runs any more. Raises SyncEnded."""
    if node.pod_cgroups is None or is_missing(run, node, pod):
        return
    run.checkpoint()
    try:
        await run.read(run.runtime.slices.stop, pod_slice(node.pod_cgroups, pod))
    except RuntimeCallError as error:
        raise SyncEnded(SyncError.POD_CGROUP, f"cgroup of the pod: {error}") from error


class PodCgroup(Protocol):
    """The cgroup of a pod that runs."""

    def read(self) -> CgroupReading:
        """Limits, weight and use."""

    async def write(self, config: CgroupConfig) -> None:
        """Write the values that are given. Raises RuntimeCallError, OSError, SyncEnded."""


def pod_cgroup(run: SyncRun, node: NodeResources, pod: Pod, sandbox: SandboxStatus) -> PodCgroup | None:
    """None of a pod that has none."""
    if node.pod_cgroups is not None:
        return _Slice(run, pod_slice(node.pod_cgroups, pod))
    directory = cgroups.pod_cgroup(sandbox.infra_pid, sandbox.id)
    return _OfPodman(run, directory) if directory else None


class _Slice:
    """systemd has the values, and would write its own again over other ones."""

    def __init__(self, run: SyncRun, name: str) -> None:
        self._run = run
        self._name = name

    def read(self) -> CgroupReading:
        return self._run.runtime.slices.read(self._name)

    async def write(self, config: CgroupConfig) -> None:
        self._run.checkpoint()
        await self._run.read(self._run.runtime.slices.start, self._name, config)


class _OfPodman:
    """Podman has no call for it: its files are this user's."""

    def __init__(self, run: SyncRun, directory: str) -> None:
        self._run = run
        self._directory = directory

    def read(self) -> CgroupReading:
        return cgroups.read_cgroup(self._directory)

    async def write(self, config: CgroupConfig) -> None:
        self._run.checkpoint()
        cgroups.write_config(self._directory, config)
