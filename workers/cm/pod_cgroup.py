"""The cgroup of one pod as a sync uses it: a slice that it makes, or where the node has none the one that Podman makes.

Mirrors the pod container manager (pkg/kubelet/cm/pod_container_manager_linux.go: Exists, EnsureExists, Destroy,
GetPodCgroupConfig, SetPodCgroupConfig) as SyncPod and SyncTerminatedPod call it (pkg/kubelet/kubelet.go).
"""

from __future__ import annotations

import os
from typing import Final, NoReturn, Protocol

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import SandboxStatus
from ipc.k8s.podresources.cgroup_config import CgroupConfig, is_given, without_lost_limits
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_cgroups import pod_slice
from ipc.link.messages import event_reasons
from ipc.link.messages.sync_error import SyncError
from workers.kubecontainer.runtime import RuntimeCallError
from workers.kubecontainer.slices import CgroupReading
from workers.proc import cgroups
from workers.specgen.container_resources import pod_cgroup_values
from workers.sync.record import SyncEnded
from workers.sync.run import SyncRun

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
"""A cgroup limits memory in pages of so many bytes."""


def is_missing(run: SyncRun, node: NodeResources, pod: Pod) -> bool:
    """Whether the pod should have a slice and has none."""
    return node.pod_cgroups is not None and not run.runtime.slices.exists(pod_slice(node.pod_cgroups, pod))


async def create(run: SyncRun, node: NodeResources, pod: Pod) -> None:
    """Make the pod's slice, which is missing. An event says why that cannot be. Raises SyncEnded."""
    assert node.pod_cgroups is not None, "no slice is missing where there are none"
    run.step("making the pod's cgroup")
    run.checkpoint()
    try:
        await run.read(run.runtime.slices.start, pod_slice(node.pod_cgroups, pod), pod_cgroup_values(pod, node))
    except RuntimeCallError as error:
        await _refused(run, error, error)


async def follow(run: SyncRun, node: NodeResources, pod: Pod, sandbox: SandboxStatus) -> None:
    """Give the pod's cgroup, which is there, what its containers have together now, before some of them start: one
    that an edit replaces may have other resources. An event says why that cannot be. Raises SyncEnded."""
    of_pod = pod_cgroup(run, node, pod, sandbox)
    if of_pod is None:
        return
    seen = of_pod.read().config
    desired = without_lost_limits(seen, pod_cgroup_values(pod, node))
    if is_given(seen, desired, PAGE_BYTES):
        return
    try:
        await of_pod.write(desired)
    except RuntimeCallError as error:
        await _refused(run, error, error)
    except OSError as error:
        await _refused(run, error.strerror or error, error)


async def _refused(run: SyncRun, why: object, error: Exception) -> NoReturn:
    """Raises SyncEnded."""
    message = f"unable to ensure pod container exists: {why}"
    await run.event(event_reasons.FAILED_TO_CREATE_POD_CONTAINER, message)
    words = f"failed to ensure that the pod: {run.pod.uid} cgroups exist and are correctly applied: {why}"
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
