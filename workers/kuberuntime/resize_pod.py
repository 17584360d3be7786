"""Give the running containers of a pod, and its cgroup, other resources.

Mirrors doPodResizeAction and updatePodContainerResources (pkg/kubelet/kuberuntime/kuberuntime_manager.go). The first
step that fails ends the resize; a later sync goes on with what is left of it. Each step may be repeated.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ipc.host.text.json_types import Json, JsonObject
from ipc.k8s.api.pod_containers import find_container
from ipc.k8s.api.v1.container import ResourceRequirements
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.k8s.kubecontainer.resize import ContainerUpdate
from ipc.k8s.podresources.allocation import RESIZABLE, resizable_part
from ipc.k8s.podresources.cgroup_config import NO_LIMIT, CgroupConfig, without_lost_limits
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_requests import MEMORY
from ipc.link.messages.pod_worker import SyncAction
from ipc.link.messages.sync_error import SyncError
from workers.cm.pod_cgroup import PAGE_BYTES, PodCgroup, pod_cgroup
from workers.compute.resize import PodResize, ResizeStep, limit_problem, resize_steps
from workers.kubecontainer.runtime import ContainerProcess, RuntimeCallError
from workers.kubecontainer.slices import CgroupReading
from workers.specgen.container_resources import container_resources, pod_cgroup_values
from workers.sync.run import SyncRun


class _Failed(Exception):
    """The resize ends here."""


async def resize_pod(run: SyncRun, node: NodeResources, pod: Pod, status: RuntimePodStatus, resize: PodResize) -> None:
    """Record how it went. Raises SyncEnded."""
    run.step("resizing")
    target = f"{run.pod.namespace}/{run.pod.name}"
    try:
        await _Resizing(run, node, pod, status, resize).carry_out()
    except (_Failed, RuntimeCallError, OSError) as error:
        run.record.failed(SyncAction.RESIZE_POD, target, SyncError.RESIZE_POD, _words(error))
        return
    run.record.succeeded(SyncAction.RESIZE_POD, target)


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"cgroup of the pod: {error.strerror or error}"
    return error.message if isinstance(error, RuntimeCallError) else str(error)


async def restore_limits(run: SyncRun, node: NodeResources, pod: Pod, status: RuntimePodStatus) -> None:
    """Where it is not known what was given to what runs (an agent or a worker died, a call had no answer), see what its
    cgroup says, and make it what it should be. Weights are not looked at. Raises SyncEnded."""
    for made in status.containers:
        found = find_container(pod.spec, made.name)
        if found is None or made.state is not ContainerState.RUNNING or made != status.newest(made.name):
            continue
        wanted = container_resources(pod, found.container, node).get("resource_limits", {})
        seen = run.runtime.read_cgroup(ContainerProcess(container_id=made.id, pid=made.pid))
        other = {name: wanted[name] for name in wanted if name in RESIZABLE and not _holds(name, wanted[name], seen)}
        if other:
            await _restore(run, made, other)


def _holds(name: str, wanted: Mapping[str, int], seen: CgroupReading) -> bool:
    """Whether the limit is what it should be; memory is limited in whole pages. Of a cgroup that cannot be read nothing
    is known."""
    if seen.memory_usage is None:
        return True
    if name == MEMORY:
        return (seen.config.memory or 0) // PAGE_BYTES == wanted["limit"] // PAGE_BYTES
    return seen.config.cpu_quota == wanted.get("quota")


async def _restore(run: SyncRun, made: RuntimeContainerStatus, resources: Json) -> None:
    try:
        await run.act(run.runtime.update_container, made.id, resources)
    except RuntimeCallError as error:
        target = f"{run.pod.namespace}/{run.pod.name}"
        run.record.failed(SyncAction.RESIZE_POD, target, SyncError.RESIZE_POD, error.message)
    else:
        run.record.did(f"restored limits of {made.name}")


class _Resizing:
    """One resize of one pod. Owns what its containers have been given so far."""

    def __init__(
        self, run: SyncRun, node: NodeResources, pod: Pod, status: RuntimePodStatus, resize: PodResize
    ) -> None:
        self._run = run
        self._node = node
        self._pod = pod
        self._resize = resize
        self._sandbox = status.sandboxes[0]
        self._given = {
            made.id: run.record.actuated_of(made.id, made.resources or ResourceRequirements())
            for made in status.containers
        }
        """Resources by container id."""

    async def carry_out(self) -> None:
        """Raises _Failed, RuntimeCallError, OSError, SyncEnded."""
        of_pod = pod_cgroup(self._run, self._node, self._pod, self._sandbox)
        seen = of_pod.read() if of_pod is not None else None
        desired = pod_cgroup_values(self._pod, self._node)
        if self._resize.restarted and seen is not None:
            desired = without_lost_limits(seen.config, desired)
        self._check_memory(seen, desired)
        for step in resize_steps(self._resize, seen.config if seen is not None else None, desired):
            await self._step(of_pod, step)
        if self._resize.pod_level:
            self._run.record.actuated(self._sandbox.id, resizable_part(self._pod.spec.resources))
            self._run.record.did("resized the pod")

    def _check_memory(self, seen: CgroupReading | None, desired: CgroupConfig) -> None:
        """Raises _Failed when something uses more than it is to have."""
        updates = self._resize.memory
        usage = {
            update.name: self._run.runtime.read_cgroup(
                ContainerProcess(container_id=update.id, pid=update.pid)
            ).memory_usage
            for update in updates
        }
        wanted = desired.memory if desired.memory != NO_LIMIT else None
        limits = (seen.config.memory, wanted) if seen is not None else (None, None)
        problem = limit_problem(updates, usage, limits, seen.memory_usage if seen is not None else None)
        if problem:
            raise _Failed(problem)

    async def _step(self, of_pod: PodCgroup | None, step: ResizeStep) -> None:
        if step.pod_cgroup is not None:
            assert of_pod is not None, "a pod without a cgroup has no step for it"
            await of_pod.write(step.pod_cgroup)
            return
        for update in step.containers:
            await self._update(update, step.resource)

    async def _update(self, update: ContainerUpdate, resource: str) -> None:
        values = self._limits(update, resource)
        if values:
            await self._run.act(self._run.runtime.update_container, update.id, values)
        given = self._given[update.id] = _with_resource(self._given[update.id], update.resources, resource)
        self._run.record.actuated(update.id, given)
        self._run.record.did(f"resized {resource} of {update.name}")

    def _limits(self, update: ContainerUpdate, resource: str) -> JsonObject:
        """Limits and weights of one resource, as the container would be made with them. A memory request alone is
        none, but for the part of the swap that goes with it."""
        found = find_container(self._pod.spec, update.name)
        assert found is not None, f"no container {update.name} in the pod's spec"
        is_request = update.current.memory_limit == update.desired.memory_limit
        if resource == MEMORY and is_request and not self._node.swap.is_limited_by_cgroup:
            return {}
        made = container_resources(self._pod, found.container, self._node).get("resource_limits", {})
        return {resource: made[resource]} if resource in made else {}


def _with_resource(given: ResourceRequirements, wanted: ResourceRequirements, resource: str) -> ResourceRequirements:
    """The resources that the container had, with what it has now of one of them."""
    limits, requests = (
        {name: source[name] for name in RESIZABLE for source in [new if name == resource else old] if name in source}
        for old, new in ((given.limits, wanted.limits), (given.requests, wanted.requests))
    )
    return msgspec.structs.replace(given, limits=limits, requests=requests)
