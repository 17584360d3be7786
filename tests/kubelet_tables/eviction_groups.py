"""Adapters of the groups about eviction: thresholds, observations, ranking, messages, rounds, admission."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ipc.host.clock import parse_rfc3339
from ipc.k8s.api.quantity import parse_amount
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.eviction.file_systems import Part, Reclaim, layout_of, ways_to_reclaim, with_containerfs
from ipc.k8s.eviction.observations import SignalObservation, of_disk, of_memory, of_pids, thresholds_met
from ipc.k8s.eviction.signals import NodePressure, Signal, resource_of
from ipc.k8s.eviction.thresholds import (
    EvictionSettings,
    Threshold,
    ThresholdError,
    ThresholdValue,
    parse_percentage,
    parse_thresholds,
    with_allocatable,
)
from ipc.k8s.eviction.usage import ContainerUsage, DiskUsage, PodUsage
from ipc.k8s.scheduling.priority import pod_priority
from supervisor.admission.pressure import pressure_problem
from supervisor.eviction import ranking
from supervisor.eviction.messages import eviction_message
from supervisor.eviction.rounds import (
    PressureState,
    conditions_last_observed,
    conditions_of,
    first_observed,
    met_for_grace_period,
    most_urgent_first,
    next_round,
    observed_since,
    with_new_figures,
)
from supervisor.eviction.victim import Eviction, eviction, is_reclaimed
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, convert

EVERY_PART: Final = frozenset(Part)
NOWHERE: Final = ""
"""Quantity of a threshold that Go fills in where nothing was stated: it is never met, and is not made here."""

# --- thresholds ---


def _parse_threshold_config(case: Json) -> Result:
    settings = EvictionSettings(
        hard=case["eviction_hard"],
        soft=case["eviction_soft"],
        soft_grace_period=case["eviction_soft_grace_period"],
        minimum_reclaim=case["eviction_min_reclaim"],
    )
    expected = case["expect_err"], _as_set(map(threshold, case["expected"]))
    has_limit = "pods" in case["allocatable_config"]
    try:
        found = parse_thresholds(settings)
    except ThresholdError:
        return expected, (True, set())
    return expected, (False, _as_set(with_allocatable(found) if has_limit else found))


def _add_allocatable_thresholds(case: Json) -> Result:
    return _as_set(map(threshold, case["expected"])), _as_set(with_allocatable(map(threshold, case["thresholds"])))


def _parse_percentage(case: Json) -> Result:
    expected = case["expect_err"], case["expected"]
    try:
        return expected, (False, parse_percentage(case["input"]))
    except ValueError:
        return expected, (True, 0)


def _compare_threshold_value(case: Json) -> Result:
    return case["expected"], value(case["a"]) == value(case["b"])


def _containerfs_thresholds(case: Json) -> Result:
    """Thresholds; the documentation tells, not an error, that one of its own is stated and overridden."""
    layout = layout_of(has_image_fs=case["image_fs"], is_split=case["container_fs"])
    assert isinstance(case["expect_err"], bool)
    return _listed(_stated(case["expected"])), _listed(with_containerfs(_stated(case["thresholds"]), layout))


def _reclaimable_threshold(case: Json) -> Result:
    known = most_urgent_first(threshold(t) for t in case["thresholds"] if t["signal"] in set(Signal))
    stated = case["expected_threshold"]
    wanted = (case["expected_found"], case["expected_resource"], stated["signal"])
    first = next(iter(known), None)
    if first is None:
        return wanted, (False, "", "")
    return wanted, (True, resource_of(first.signal), first.signal.value)


def _sort_thresholds(case: Json) -> Result:
    made = [Threshold(signal=Signal(name), value=ThresholdValue(quantity="1")) for name in case["signals"]]
    return case["expected"], [found.signal.value for found in most_urgent_first(made)]


def threshold(data: Json) -> Threshold:
    """Threshold of a case."""
    return Threshold(
        signal=Signal(data["signal"]),
        value=value(data["value"]),
        grace_period_s=data["grace_period_s"],
        min_reclaim=value(data["min_reclaim"]) if data["min_reclaim"] is not None else None,
    )


def value(data: Json) -> ThresholdValue:
    """Value of a case."""
    quantity = data["quantity"]
    return ThresholdValue(quantity=str(parse_amount(quantity)) if quantity else NOWHERE, percentage=data["percentage"])


def _stated(listed: Iterable[Json]) -> list[Threshold]:
    return [threshold(data) for data in listed if data["value"]["quantity"] or data["value"]["percentage"]]


def _listed(thresholds: Iterable[Threshold]) -> list[tuple[object, ...]]:
    """Shares are rounded: the cases have a few digits of a float32."""
    return [(t.signal, _rounded(t.value), t.grace_period_s, _rounded(t.min_reclaim)) for t in thresholds]


def _as_set(thresholds: Iterable[Threshold]) -> set[tuple[object, ...]]:
    return set(_listed(thresholds))


def _rounded(stated: ThresholdValue | None) -> tuple[str, float] | None:
    return (stated.quantity, round(stated.percentage, 6)) if stated is not None else None


# --- observations ---


def _signal_observations(case: Json) -> Result:
    expected = {
        signal: (float(parse_amount(o["available"]).value), float(parse_amount(o["capacity"]).value))
        for signal, o in case["expected"].items()
    }
    got = {s.value: (float(o.available), float(o.capacity)) for s, o in of_node(case["node"], 0.0).items()}
    return expected, got


def of_node(node: Json, time: float) -> dict[Signal, SignalObservation]:
    """Observations of stats/v1alpha1 NodeStats."""
    runtime = node.get("runtime") or {}
    pods: Json = next((c for c in node.get("systemContainers") or () if c["name"] == "pods"), {})
    limit = node.get("rlimit") or {}
    found = {
        Signal.MEMORY_AVAILABLE: _memory(node.get("memory"), time),
        Signal.ALLOCATABLE_MEMORY_AVAILABLE: _memory(pods.get("memory"), time),
        Signal.NODEFS_AVAILABLE: _disk(node.get("fs"), "availableBytes", "capacityBytes", time),
        Signal.NODEFS_INODES_FREE: _disk(node.get("fs"), "inodesFree", "inodes", time),
        Signal.IMAGEFS_AVAILABLE: _disk(runtime.get("imageFs"), "availableBytes", "capacityBytes", time),
        Signal.IMAGEFS_INODES_FREE: _disk(runtime.get("imageFs"), "inodesFree", "inodes", time),
        Signal.CONTAINERFS_AVAILABLE: _disk(runtime.get("containerFs"), "availableBytes", "capacityBytes", time),
        Signal.CONTAINERFS_INODES_FREE: _disk(runtime.get("containerFs"), "inodesFree", "inodes", time),
        Signal.PID_AVAILABLE: of_pids(limit.get("maxpid"), limit.get("curproc"), time),
    }
    return {signal: observation for signal, observation in found.items() if observation is not None}


def _memory(data: Json | None, time: float) -> SignalObservation | None:
    available, used = (data or {}).get("availableBytes"), (data or {}).get("workingSetBytes")
    return of_memory(available + used, used, time) if available is not None and used is not None else None


def _disk(data: Json | None, available: str, capacity: str, time: float) -> SignalObservation | None:
    return of_disk((data or {}).get(available), (data or {}).get(capacity), time)


def _observations(data: Json) -> dict[Signal, SignalObservation]:
    return {Signal(signal): _observation(each) for signal, each in data.items()}


def _observation(data: Json) -> SignalObservation:
    available, capacity = (int(parse_amount(data[name] or "0").value) for name in ("available", "capacity"))
    return SignalObservation(available, capacity, parse_rfc3339(data["time"]) if data["time"] else 0.0)


# --- rounds ---


def _thresholds_met(case: Json) -> Result:
    found = thresholds_met(
        map(threshold, case["thresholds"]),
        _observations(case["observations"]),
        enforce_min_reclaim=case["enforce_min_reclaim"],
    )
    return _as_set(map(threshold, case["expected"])), _as_set(found)


def _thresholds_updated_stats(case: Json) -> Result:
    found = with_new_figures(
        map(threshold, case["thresholds"]), _observations(case["observations"]), _observations(case["last"])
    )
    return _as_set(map(threshold, case["expected"])), _as_set(found)


def _thresholds_first_observed_at(case: Json) -> Result:
    found = first_observed(
        map(threshold, case["thresholds"]), _times(case["last_observed_at"]), parse_rfc3339(case["now"])
    )
    return _times(case["expected"]), found


def _thresholds_met_grace_period(case: Json) -> Result:
    found = met_for_grace_period(_times(case["observed_at"]), parse_rfc3339(case["now"]))
    return _as_set(map(threshold, case["expected"])), _as_set(found)


def _times(listed: Iterable[Json]) -> dict[Threshold, float]:
    return {threshold(each["threshold"]): parse_rfc3339(each["at"]) for each in listed}


def _node_conditions(case: Json) -> Result:
    return case["expected"], list(conditions_of(map(threshold, case["thresholds"])))


def _conditions_last_observed_at(case: Json) -> Result:
    found = conditions_last_observed(
        map(NodePressure, case["node_conditions"]), _dates(case["last_observed_at"]), parse_rfc3339(case["now"])
    )
    return _dates(case["expected"]), found


def _conditions_observed_since(case: Json) -> Result:
    found = observed_since(_dates(case["observed_at"]), case["period"], parse_rfc3339(case["now"]))
    return case["expected"], list(found)


def _dates(data: Mapping[str, str]) -> dict[NodePressure, float]:
    return {NodePressure(condition): parse_rfc3339(at) for condition, at in data.items()}


# --- who goes ---


def _order_pods(case: Json) -> Result:
    usage = {name: usage_of(stats) for name, stats in case["stats"].items()}

    def of(pod: Pod) -> PodUsage | None:
        return usage.get(pod.metadata.uid)

    keys: Mapping[str, ranking.Key] = {
        "exceed_memory_requests": ranking.exceeds_memory_request(of),
        "exceed_disk_requests": ranking.exceeds_disk_request(of, EVERY_PART, "ephemeral-storage"),
        "priority": pod_priority,
        "memory": ranking.most_memory(of),
        "disk": ranking.most_disk(of, EVERY_PART),
        "inodes": ranking.most_inodes(of, EVERY_PART),
        "process": ranking.most_processes(of),
    }
    found = ranking.ordered([_pod(pod) for pod in case["pods"]], [keys[name] for name in case["by"]])
    return case["expected"], [pod.metadata.name for pod in found]


def _pod(data: Json) -> Pod:
    """Some have no containers, which a manifest has to have."""
    return convert({**data, "spec": {**data["spec"], "containers": data["spec"].get("containers") or []}}, Pod)


def usage_of(stats: Json) -> PodUsage:
    """Usage of stats/v1alpha1 PodStats."""
    return PodUsage(
        uid=stats["podRef"]["uid"],
        memory=(stats.get("memory") or {}).get("workingSetBytes"),
        processes=(stats.get("process_stats") or {}).get("process_count"),
        containers=tuple(
            ContainerUsage(
                name=c["name"],
                memory=(c.get("memory") or {}).get("workingSetBytes"),
                rootfs=_disk_usage(c.get("rootfs")),
                logs=_disk_usage(c.get("logs")),
            )
            for c in stats.get("containers") or ()
        ),
        volumes={v["name"]: _disk_usage(v) or DiskUsage() for v in stats.get("volume") or ()},
    )


def _disk_usage(data: Json | None) -> DiskUsage | None:
    return DiskUsage(data.get("usedBytes"), data.get("inodesUsed")) if data is not None else None


def _message(case: Json) -> Result:
    pod = convert(case["pod"], Pod)
    whole, is_pod_level = case["pod_memory"], case["pod_level_resources"]
    if whole and not is_pod_level:
        raise Later("the gate PodLevelResources is always on")
    usage = PodUsage(
        uid=pod.metadata.uid,
        memory=int(parse_amount(whole).value) if whole else None,
        containers=tuple(
            ContainerUsage(name=each["name"], memory=int(parse_amount(each["usage"]).value))
            for each in case["container_memory"]
        ),
    )
    found = eviction_message(
        case["resource"], pod, usage, map(threshold, case["thresholds"]), _observations(case["observations"])
    )
    return (case["expected_message"], case["expected_annotations"]), (found.text, found.annotations)


def _admit(case: Json) -> Result:
    expected = case["expected"]
    found = _admission(convert(case["pod"], Pod), tuple(map(NodePressure, case["node_conditions"])))
    return expected, found


def _admission(pod: Pod, conditions: Sequence[NodePressure]) -> Json:
    reason, message = pressure_problem(pod, conditions) or ("", "")
    return {"admit": not reason, "reason": reason, "message": message}


# --- the manager, step by step ---

_RECLAIMS: Final = {Reclaim.CONTAINERS: "container_gc", Reclaim.IMAGES: "image_gc"}


class _Manager:
    """Rounds one after another, as the sync loop has them."""

    def __init__(self, case: Json) -> None:
        config = case["config"]
        self._layout = layout_of(
            has_image_fs=bool(case["has_dedicated_imagefs"]), is_split=bool(case["has_dedicated_containerfs"])
        )
        self._thresholds = with_containerfs(_stated(config["thresholds"]), self._layout)
        self._transition_period_s = config["pressure_transition_period_s"]
        self._max_grace_s = config["max_pod_grace_period_s"]
        self._pods = {name: convert(pod, Pod) for name, pod in case["pods"].items()}
        self._state = PressureState()

    def step(self, step: Json) -> Json:
        if step["op"] == "admit":
            return _admission(convert(step["pod"], Pod), self._state.conditions)
        now, summary = step["at_s"], step["summary"]
        found = next_round(self._state, self._thresholds, of_node(summary["node"], 0.0), self._transition_period_s, now)
        self._state = found.state
        made: dict[str, Any] = {"evicted": [], "reclaim": []}
        if found.thresholds:
            self._act(step, found.thresholds, made)
        return {
            **made,
            "conditions": list(self._state.conditions),
            "thresholds_met": _as_set(self._state.met),
            "first_observed_at_s": dict(self._state.first_observed),
            "conditions_last_observed_at_s": dict(self._state.conditions_last_observed),
        }

    def _act(self, step: Json, thresholds: Sequence[Threshold], made: dict[str, Any]) -> None:
        made["reclaim"] = [_RECLAIMS[way] for way in ways_to_reclaim(thresholds[0].signal, self._layout)]
        after = step["summary_after_reclaim"]
        if made["reclaim"] and after is not None and is_reclaimed(self._thresholds, of_node(after["node"], 0.0)):
            return
        summary, pods = step["summary"], [self._pods[name] for name in step["active"]]
        usage = {stats["podRef"]["uid"]: usage_of(stats) for stats in summary.get("pods") or ()}
        observations = self._state.observations
        found = eviction(thresholds, observations, pods, usage, self._layout, self._max_grace_s)
        if found is not None:
            made["evicted"] = [_told(found)]


def _told(found: Eviction) -> Json:
    message = found.message.text
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": message,
    }
    status = {"phase": "Failed", "reason": "Evicted", "message": message, "conditions": [condition]}
    return {"pod": found.uid, "grace_s": found.grace_period_s, "status": status}


def _synchronize(case: Json) -> Result:
    if case["local_storage_capacity_isolation"]:
        raise Later("limits of a pod's own storage are enforced by its worker, beside this (workers/eviction)")
    manager = _Manager(case)
    expected, got = [], []
    for step in case["steps"]:
        wanted = dict(step["expected"])
        if step["op"] == "synchronize":
            if wanted.pop("error"):
                raise Later("a round without figures is none here")
            stated = wanted.pop("thresholds", None)
            wanted["thresholds_met"] = _as_set(map(threshold, wanted["thresholds_met"]))
            wanted["first_observed_at_s"] = {
                threshold(each["threshold"]): each["at_s"] for each in wanted["first_observed_at_s"]
            }
            del stated
        expected.append(wanted)
        got.append(manager.step(step))
    return expected, got


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "eviction_parse_threshold_config": _parse_threshold_config,
    "eviction_add_allocatable_thresholds": _add_allocatable_thresholds,
    "eviction_parse_percentage": _parse_percentage,
    "eviction_compare_threshold_value": _compare_threshold_value,
    "eviction_containerfs_thresholds": _containerfs_thresholds,
    "eviction_reclaimable_threshold": _reclaimable_threshold,
    "eviction_sort_thresholds": _sort_thresholds,
    "eviction_signal_observations": _signal_observations,
    "eviction_thresholds_met": _thresholds_met,
    "eviction_thresholds_updated_stats": _thresholds_updated_stats,
    "eviction_thresholds_first_observed_at": _thresholds_first_observed_at,
    "eviction_thresholds_met_grace_period": _thresholds_met_grace_period,
    "eviction_node_conditions": _node_conditions,
    "eviction_node_conditions_last_observed_at": _conditions_last_observed_at,
    "eviction_node_conditions_observed_since": _conditions_observed_since,
    "eviction_order_pods": _order_pods,
    "eviction_message": _message,
    "eviction_admit": _admit,
    "eviction_synchronize": _synchronize,
}
