"""Adapters of the groups about resizes of pods that run: (expected, got) of one case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import to_builtins

from ipc.k8s.api.quantity import parse_quantity
from ipc.k8s.api.v1.container import Container, ResourceRequirements
from ipc.k8s.api.v1.meta import ObjectMeta
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.api.v1.status import PodCondition
from ipc.k8s.api.validation.pods.resize import validate_pod_resize
from ipc.k8s.kubecontainer.pod_status import (
    ContainerState,
    RuntimeContainerStatus,
    RuntimePodStatus,
    SandboxState,
    SandboxStatus,
)
from ipc.k8s.kubecontainer.resize import ContainerUpdate, is_resize_in_progress
from ipc.k8s.podresources.allocation import (
    RESIZABLE,
    PodResourceInfo,
    ResourceAmounts,
    is_resize_increasing_requests,
    same_compute,
    update_pod_from_allocation,
)
from ipc.k8s.podresources.cgroup_config import CgroupConfig, milli_cpu_to_quota, milli_cpu_to_shares
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.k8s.podresources.pod_requests import CPU, MEMORY, amount, pod_requests
from supervisor.admission.node_usage import NodeUsage
from supervisor.admission.resource_fit import shortages
from supervisor.managers.allocation import (
    AllocationManager,
    PendingPod,
    sort_pending_resizes,
    updated_resize_condition,
)
from supervisor.pods.parts import KnownPods
from supervisor.state.resources_checkpoint import PodResources
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, convert, pod
from workers.compute.resize import PodResize, limit_problem, resize_steps

QUOTA_PERIOD_US: Final = 100_000
_GATE_OFF: Final = "a gate of in-place resize that is on here"
_NOT_DEFAULTED: Final = "the QoS class of a pod that was not defaulted"
_ELSEWHERE: Final = {
    "FG disabled": _GATE_OFF,
    "NodeAllocatableResourceClaim": "resource claims on the node's own resources",
    "nil resources in old pod": _NOT_DEFAULTED,
    "burstable -> burstable, add requests": _NOT_DEFAULTED,
    "from non-sidecar initContainer": "an empty restartPolicy, which is refused when it is decoded",
    "change sidecar container resize restart policy": "said of the init container alone, not of the pod too",
}
"""Words of a case's name -> why it is not for us."""


def _validate_pod_resize(case: Json) -> Result:
    if why := next((why for words, why in _ELSEWHERE.items() if words in case["name"]), ""):
        raise Later(why)
    said = ", ".join(map(str, validate_pod_resize(pod(case["old"]), pod(case["new"]))))
    wanted = case["error_contains"]
    return wanted, wanted if (wanted in said if wanted else not said) else said


def _allocation(data: Json) -> PodResourceInfo | None:
    if data["container_resources"] is None and data["pod_level_resources"] is None:
        return None
    return PodResourceInfo(
        pod_level_resources=_resources(data["pod_level_resources"]),
        container_resources={
            name: convert(resources, ResourceRequirements)
            for name, resources in (data["container_resources"] or {}).items()
        },
    )


def _resources(data: Json | None) -> ResourceRequirements | None:
    return convert(data, ResourceRequirements) if data is not None else None


def _allocation_update_pod(case: Json) -> Result:
    of, allocated = pod(case["pod"]), _allocation(case["allocated"])
    if not case["pod_level_resize"] and of.spec.resources is not None:
        raise Later(_GATE_OFF)
    got = update_pod_from_allocation(of, allocated) if allocated is not None else of
    return (case["expected_update"], pod(case["expected_pod"])), (got is not of, got)


def _allocation_resize_increases_requests(case: Json) -> Result:
    of, allocated = pod(case["pod"]), _allocation(case["allocated"])
    if not case["pod_level_resize"] and of.spec.resources is not None:
        raise Later(_GATE_OFF)
    before = update_pod_from_allocation(of, allocated) if allocated is not None else of
    return case["expected"], is_resize_increasing_requests(before, of)


def _amounts(data: Json) -> ResourceAmounts:
    return convert(data, ResourceAmounts)


def _update(data: Json, name: str = "") -> ContainerUpdate:
    return ContainerUpdate(
        id=f"{name}-id", name=name, current=_amounts(data["current"]), desired=_amounts(data["desired"])
    )


def _resize_do_pod_action(case: Json) -> Result:
    """Errors come of the calls, which are others here: the steps up to the one that fails."""
    if case["runtime_errors"] or case["cgroup_error"]:
        raise Later("never: an error of UpdatePodSandboxResources, a call of CRI's that Podman has not")
    of, now = pod(case["pod"]), case["current_pod"]
    updates = {
        name: tuple(_update(update, update["container"]) for update in listed)
        for name, listed in case["containers_to_update"].items()
    }
    resize = PodResize(
        memory=updates.get("memory", ()), cpu=updates.get("cpu", ()), pod_level=bool(case["update_pod_level"])
    )
    steps = resize_steps(resize, _cgroup(now["memory_limit"], now["cpu_request_m"], now["cpu_limit_m"]), _wanted(of))
    got = [
        {"pod_cgroup": to_builtins(step.pod_cgroup)} if step.pod_cgroup is not None else {"containers": step.resource}
        for step in steps
    ]
    return case["expected_steps"], got


def _cgroup(memory: int, cpu_request: int, cpu_limit: int) -> CgroupConfig:
    return CgroupConfig(
        memory=memory or None,
        cpu_shares=milli_cpu_to_shares(cpu_request),
        cpu_quota=milli_cpu_to_quota(cpu_limit, QUOTA_PERIOD_US) if cpu_limit else None,
        cpu_period=QUOTA_PERIOD_US if cpu_limit else None,
    )


def _wanted(of: Pod) -> CgroupConfig:
    """As upstream makes the cgroup of a pod: with the limits of its containers together where each has one."""
    limits = {
        name: pod_limit or (sum(own) if all(own) else 0)
        for name in RESIZABLE
        for pod_limit in [amount(of.spec.resources.limits, name) if of.spec.resources is not None else 0]
        for own in [[amount(container.resources.limits, name) for container in of.spec.containers]]
    }
    return _cgroup(limits[MEMORY], pod_requests(of).get(CPU, 0), limits[CPU])


def _resize_validate(case: Json) -> Result:
    update = _update(case, "foo1")
    limits = (case["current_pod_mem_limit"], case["desired_pod_mem_limit"])
    usage = {"foo1": case["container_memory_usage"]}
    return case["expected_error"], bool(limit_problem((update,), usage, limits, case["pod_memory_usage"]))


def _quantities(data: Json | None) -> ResourceRequirements | None:
    """Amounts as the table has them: 0 is not set."""
    if data is None:
        return None
    amounts = {part: {CPU: f"{data[f'cpu_{part}']}m", MEMORY: str(data[f"mem_{part}"])} for part in ("req", "lim")}
    requests, limits = (
        {name: quantity for name, quantity in amounts[part].items() if parse_quantity(quantity)}
        for part in ("req", "lim")
    )
    return ResourceRequirements(requests=requests, limits=limits)


def _resize_in_progress(case: Json) -> Result:
    if not case["pod_level_resize"] and case["pod_level_resources"]:
        raise Later(_GATE_OFF)
    containers, init, made = list[Container](), list[Container](), list[RuntimeContainerStatus]()
    for number, data in enumerate(case["containers"]):
        name = f"c{number}"
        resources = _quantities(data["allocated"])
        assert resources is not None
        container = Container(name=name, resources=resources, restart_policy="Always" if data["sidecar"] else None)
        (init if data["sidecar"] or data["non_sidecar_init"] else containers).append(container)
        if not data["unstarted"]:
            state = ContainerState.RUNNING if data["is_running"] else ContainerState.EXITED
            made.append(
                RuntimeContainerStatus(
                    id=name, name=name, attempt=0, state=state, resources=_quantities(data["actuated"])
                )
            )
    whole = case["pod_level_resources"] or {"allocated": None, "actuated": None}
    sandbox = SandboxStatus(
        id="s", name="s", infra_id="i", attempt=0, state=SandboxState.READY, resources=_quantities(whole["actuated"])
    )
    of = Pod(
        metadata=ObjectMeta(),
        spec=PodSpec(
            containers=tuple(containers), init_containers=tuple(init), resources=_quantities(whole["allocated"])
        ),
    )
    observed = RuntimePodStatus(uid="u", sandboxes=(sandbox,), containers=tuple(made))
    return case["expected"], is_resize_in_progress(of, observed, {})


def _resize_cmp_actuated_allocated(case: Json) -> Result:
    left, right = (_resources(case[name]) for name in ("actuated_resources", "allocated_resources"))
    return case["expected"], same_compute(left, right)


_NODE: Final = NodeResources(allocatable={"cpu": "4", "memory": "4Gi"})
_MAX_PODS: Final = 40


def _admission(of: Pod, others: list[Pod]) -> tuple[bool, str, str]:
    usage = NodeUsage(other for other in others if other.metadata.uid != of.metadata.uid)
    shortage = next(shortages(of, usage, _NODE, _MAX_PODS), None)
    return (True, "", "") if shortage is None else (False, shortage.reason, shortage.message)


def _allocation_can_admit(case: Json) -> Result:
    """Admission of a resize, before it is said whether it is deferred; upstream's handler has no part."""
    expected = case["expected"]
    got = _admission(pod(case["pod"]), [pod(other) for other in case["allocated_pods"]])
    return (expected["admit"], expected["reason"], expected["message"]), got


def _allocation_add_pod(case: Json) -> Result:
    if not case["gate"]:
        raise Later(_GATE_OFF)
    allocations = AllocationManager(KnownPods())
    initial = case["initial_allocated"] or {}
    allocations.restore({uid: PodResources(allocated=_info(known, case)) for uid, known in initial.items()})
    of = allocations.allocated(pod(case["pod"]))
    is_admitted = _admission(of, [allocations.allocated(pod(other)) for other in case["active_pods"]])[0]
    if is_admitted:
        allocations.allocate(of)
    got = {uid: kept.allocated for uid, kept in allocations.all_resources().items()}
    expected = {uid: _info(known, case) for uid, known in case["expected_allocated"].items()}
    return (case["expected_admit"], expected), (is_admitted, got)


def _info(data: Json, case: Json) -> PodResourceInfo:
    """Requests of its one container; in the cases about a pod as a whole its own, too."""
    own, whole = (data["container_resources"], data["pod_resources"]) if case["pod_level"] else (data, None)
    return PodResourceInfo(
        pod_level_resources=ResourceRequirements(requests=whole) if whole is not None else None,
        container_resources={"c1": ResourceRequirements(requests=own)},
    )


def _allocation_sort_pending(case: Json) -> Result:
    since = {uid: f"2026-01-01T00:00:{number:02}Z" for number, uid in enumerate(case["deferred"])}
    pending = dict[str, PendingPod]()
    for data in (*case["pods"][2:], *case["pods"][:2]):  # the first two are alike
        after = pod(data)
        uid, allocated = after.metadata.uid, ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"})
        before = update_pod_from_allocation(
            after, PodResourceInfo(container_resources={c.name: allocated for c in after.spec.containers})
        )
        qos = data["status"].get("qosClass", "")
        pending[uid] = PendingPod(before=before, after=after, qos=qos, since=since.get(uid, ""))
    return case["expected"], sort_pending_resizes(pending)


def _status_resize_condition(case: Json) -> Result:
    old, expected = (convert(case[name], PodCondition) if case[name] else None for name in ("old", "expected"))
    got = updated_resize_condition(
        case["type"], old, case["reason"], case["message"], case["observed_generation"], case["now"]
    )
    return expected, got


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "validate_pod_resize": _validate_pod_resize,
    "allocation_update_pod": _allocation_update_pod,
    "allocation_resize_increases_requests": _allocation_resize_increases_requests,
    "allocation_can_admit": _allocation_can_admit,
    "allocation_add_pod": _allocation_add_pod,
    "allocation_sort_pending": _allocation_sort_pending,
    "status_resize_condition": _status_resize_condition,
    "resize_do_pod_action": _resize_do_pod_action,
    "resize_validate": _resize_validate,
    "resize_in_progress": _resize_in_progress,
    "resize_cmp_actuated_allocated": _resize_cmp_actuated_allocated,
}
"""Group -> adapter."""
