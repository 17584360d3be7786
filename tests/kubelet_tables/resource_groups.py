"""Adapters of the groups about priority, the node's resources, cgroups and sysctls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ipc.k8s.api.quantity import parse_amount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.thresholds import Threshold, ThresholdValue, parse_percentage
from ipc.k8s.nodestatus import allocatable
from ipc.k8s.podresources import cgroup_config, pod_cgroups
from ipc.k8s.podresources.node_resources import CfsQuota
from supervisor.admission import preemption
from supervisor.admission.predicates import Rejected
from supervisor.admission.resource_fit import Shortage
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json
from tests.kubelet_tables.translate import pod as to_pod


def _named(fields: Json) -> Pod:
    """Upstream's pods of these tests have a generateName alone."""
    metadata = fields["metadata"]
    name = metadata.get("name") or metadata["generateName"]
    return to_pod({**fields, "metadata": {**metadata, "name": name, "uid": name}})


def _requirements(listed: Sequence[Json]) -> dict[str, int]:
    return {each["resource_name"]: each["quantity"] for each in listed}


def _names(pods: Sequence[Pod]) -> list[str]:
    return sorted(pod.metadata.name for pod in pods)


def _pods_to_preempt(case: Json) -> Result:
    pods, expected = [_named(fields) for fields in case["pods"]], case["expected"]
    needed = _requirements(case["insufficient"])
    try:
        found: object = _names(preemption.pods_to_preempt(_named(case["preemptor"]), pods, needed))
    except preemption.NoVictims:
        found = "error"
    return "error" if case["expect_err"] else sorted(expected), found


def _distance(case: Json) -> Result:
    found = preemption.candidate(_named(case["pod"]))
    return case["expected"], preemption.distance(_requirements(case["requirements"]), found)


def _subtract(case: Json) -> Result:
    found = preemption.candidate(_named(case["pod"]))
    left = preemption.remaining(_requirements(case["initial"]), (found,))
    return _requirements(case["expected"]), left


def _smaller_request(case: Json) -> Result:
    one, other = (preemption.candidate(_named(case[name])) for name in ("pod1", "pod2"))
    return case["expected"], preemption.has_smaller_requests(one, other)


def _admission_failure(case: Json) -> Result:
    """Whether the chosen ones can be killed changes nothing of the choice."""
    shortages, rejections = [], []
    for reason in case["fail_reasons"]:
        if reason["kind"] == "InsufficientResource":
            shortages.append(Shortage(reason["resource"], reason["requested"], reason["used"], reason["capacity"]))
        else:
            rejections.append(Rejected(reason["name"], reason["desc"]))
    found = preemption.recover(
        _named(case["admit_pod"]), rejections, shortages, [_named(fields) for fields in case["pods"]]
    )
    killer_fails = case["pod_killer_fails"]
    assert not case["expect_err"]
    rejected = next(iter(case["expected_reasons"]), None)
    expected = sorted(case["expected_killed"]), _reason(rejected) if rejected else None
    if isinstance(found, Rejected):
        return expected, ([], found.reason)
    return expected, ([] if killer_fails else _names(found), None)


def _reason(reason: Mapping[str, Any]) -> str:
    return f"OutOf{reason['resource']}" if reason["kind"] == "InsufficientResource" else reason["name"]


def _node_allocatable(case: Json) -> Result:
    capacity, reserved = case["capacity"], [case["kube_reserved"] or {}, case["system_reserved"] or {}]
    hard = case["hard_threshold"]
    share = parse_percentage(f"{hard['percentage'] * 100:g}%")
    value = ThresholdValue(quantity=hard["quantity"] or "", percentage=share)
    threshold = Threshold(signal=Signal(case["signal"]), value=value)
    is_set = threshold.value != ThresholdValue()
    kept = allocatable.reservation(capacity, reserved, (threshold,) if is_set else ())
    match case["op"]:
        case "reservation":
            return _amounts(case["expected"]), _amounts(kept)
        case "enforcement":
            without_thresholds = allocatable.reservation(capacity, reserved, ())
            return _amounts(case["expected"]), _amounts(allocatable.without(capacity, without_thresholds))
        case "validate":
            return case["expected"], not allocatable.reservation_problem(capacity, kept)
    raise KeyError(case["op"])


def _amounts(resources: Mapping[str, str]) -> dict[str, object]:
    return {name: parse_amount(quantity).value for name, quantity in resources.items()}


def _resource_config_for_pod(case: Json) -> Result:
    if case["enforce_memory_qos"] or case["memory_reservation_policy"] != "None":
        raise Later("never: MemoryQoS is an alpha feature, off by default")
    cfs = CfsQuota(enforced=case["enforce_cpu_limits"], period_us=case["cpu_period_us"])
    assert case["pod_level_resources"] == ("resources" in case["pod"]["spec"])
    return case["expected"], _set_fields(cgroup_config.pod_cgroup_config(to_pod(case["pod"]), cfs))


def _set_fields(config: cgroup_config.CgroupConfig) -> dict[str, int]:
    fields = {name: getattr(config, name) for name in config.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not None}


def _weight_to_shares(case: Json) -> Result:
    return case["expected"], cgroup_config.weight_to_shares(case["cpu_weight"])


def _cgroup_name(case: Json) -> Result:
    name = tuple(case["input"])
    match case["op"]:
        case "systemd_basename":
            return case["expected"], pod_cgroups.systemd_basename(name)
        case "systemd":
            return case["expected"], pod_cgroups.systemd_path(name)
    raise Later("never: pods have slices where systemd manages cgroups, and none of ours elsewhere")


def _is_pod_cgroup(case: Json) -> Result:
    if case["driver"] != "systemd":
        raise Later("never: pods have slices where systemd manages cgroups, and none of ours elsewhere")
    slice_name = pod_cgroups.systemd_basename(tuple(case["parts"]))
    uid = pod_cgroups.pod_uid(pod_cgroups.parse_slice(slice_name), ())
    return (case["expected"], case["expected_uid"]), (bool(uid), uid)


def _cgroup_config(case: Json) -> Result:
    if case["compressible_only"]:
        raise Later("never: nothing is enforced in cgroups of the system")
    return case["expected"], _set_fields(pod_cgroups.root_config(case["resources"]))


def _burstable_cpu_shares(case: Json) -> Result:
    return case["expected"], pod_cgroups.burstable_cpu_shares([_named(pod) for pod in case["pods"]])


ADAPTERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Result]]] = {
    "preemption_get_pods_to_preempt": _pods_to_preempt,
    "preemption_distance": _distance,
    "preemption_subtract": _subtract,
    "preemption_smaller_resource_request": _smaller_request,
    "preemption_handle_admission_failure": _admission_failure,
    "node_allocatable": _node_allocatable,
    "resource_config_for_pod": _resource_config_for_pod,
    "cpu_weight_to_shares": _weight_to_shares,
    "cgroup_name": _cgroup_name,
    "is_pod_cgroup": _is_pod_cgroup,
    "cgroup_config_from_resources": _cgroup_config,
    "qos_burstable_cpu_shares": _burstable_cpu_shares,
}
