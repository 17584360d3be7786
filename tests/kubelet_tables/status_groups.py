"""Adapters of the groups that the supervisor answers for: phase, conditions, container statuses, grace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from ipc.k8s.api.pod_containers import ContainerKind
from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.status import ContainerStatus, PodCondition, PodStatus
from ipc.k8s.podresources.qos import compute_pod_qos
from supervisor.pods.lifecycle import effective_grace_period
from supervisor.status import conditions
from supervisor.status.containers import ContainerStatusInput, container_statuses
from supervisor.status.phase import get_phase
from supervisor.status.report import merge_pod_status, normalize_status
from supervisor.status.termination import terminate_pod
from supervisor.status.transitions import with_transition_times
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, convert, pod, pod_status

_NOW: Final = "2200-01-01T00:00:00Z"
_CONDITION_FIELDS: Final = ("type", "status", "reason", "message")
_SYNTHESIZED_REASONS: Final = frozenset({"Completed", "Error", "ContainerCannotRun"})
"""Podman knows no reason; upstream's cases have what their fake runtime says, which is nothing."""


def _statuses(data: Any) -> tuple[ContainerStatus, ...] | None:
    return None if data is None else tuple(convert(status, ContainerStatus) for status in data)


def _pod_phase(case: Json) -> Result:
    got = get_phase(
        pod(case["pod"]).spec,
        _statuses(case["statuses"]) or (),
        pod_is_terminal=case["pod_is_terminal"],
        pod_has_initialized=case["pod_has_initialized"],
    )
    return case["expected"], got


def _containers_ready(case: Json) -> Result:
    spec, statuses = pod(case["pod"]).spec, _statuses(case["container_statuses"])
    return _condition(case, conditions.containers_ready(spec, statuses, case["phase"]))


def _initialized(case: Json) -> Result:
    spec, statuses = pod(case["pod"]).spec, _statuses(case["container_statuses"])
    return _condition(case, conditions.initialized(spec, statuses, case["phase"]))


def _pod_ready(case: Json) -> Result:
    others = tuple(convert(condition, PodCondition) for condition in case["conditions"] or ())
    statuses = _statuses(case["container_statuses"])
    return _condition(case, conditions.pod_ready(pod(case["pod"]).spec, others, statuses, case["phase"]))


def _ready_to_start_containers(case: Json) -> Result:
    if any(sandbox["ip"] == "" for sandbox in case["status"]["sandboxes"]):
        raise Later("never: a rootless network gives no address that the host could see")
    of = pod(case["pod"])
    return _condition(case, conditions.ready_to_start_containers(of, pod_status(case["status"], of)))


def _condition(case: Json, made: PodCondition) -> Result:
    expected = {field: case["expected"].get(field, "") for field in _CONDITION_FIELDS}
    return expected, {field: getattr(made, field) for field in _CONDITION_FIELDS}


def _all_containers_restarting(case: Json) -> Result:
    of = pod(case["pod"])
    before = tuple(
        convert(condition, PodCondition) for condition in (case["old_api_status"] or {}).get("conditions", ())
    )
    observed = pod_status(case["status"], of)
    return _condition(case, conditions.all_containers_restarting(of.spec, observed, before, case["phase"]))


def _convert_to_api_container_statuses(case: Json) -> Result:
    of = pod(case["pod"])
    given = ContainerStatusInput(
        pod=of,
        observed=pod_status(case["status"], of),
        terminating=of.metadata.deletion_timestamp is not None,
        restarting_all=case["pod_restarting"],
    )
    kind = ContainerKind.INIT if case["is_init_container"] else ContainerKind.REGULAR
    containers = tuple(convert(container, Container) for container in case["containers"])
    got = container_statuses(given, kind, containers, _statuses(case["previous"]) or ())
    return [_comparable(status) for status in case["expected"]], [_comparable(to_builtins(status)) for status in got]


def _comparable(status: Json) -> dict[str, Any]:
    """Without what the Go test blanks or its fakes leave empty."""
    states = {key: _comparable_state(status.get(key, {})) for key in ("state", "lastState")}
    return {"name": status["name"], "restartCount": status.get("restartCount", 0), **states}


def _comparable_state(state: Json) -> dict[str, Any]:
    found: tuple[str, Json] = next(iter(state.items()), ("", {}))
    kind, detail = found
    reason = detail.get("reason", "")
    return {
        "kind": kind,
        "exitCode": detail.get("exitCode"),
        "reason": "" if reason in _SYNTHESIZED_REASONS else reason,
        "message": detail.get("message", ""),
    }


def _pod_qos(case: Json) -> Result:
    return case["expected"], compute_pod_qos(pod(case["pod"]))


def _effective_grace_period(case: Json) -> Result:
    return case["expected"], effective_grace_period(pod(case["pod"]), case["grace_override"], None)


def _merge_pod_status(case: Json) -> Result:
    """Conditions are generated with the phase that they fit, and not changed afterwards."""
    told, new, expected = (convert(case[name], PodStatus) for name in ("old", "new", "expected"))
    got = merge_pod_status(told, new, could_have_running_containers=case["could_have_running_containers"])
    return _phase_of(expected), _phase_of(got)


def _phase_of(status: PodStatus) -> tuple[str, str, str]:
    return status.phase, status.reason, status.message


def _normalize_status(case: Json) -> Result:
    """Upstream sorts here too; our statuses are generated in their order (`convert_to_api_container_statuses`)."""
    got = normalize_status(pod(case["pod"]).spec, convert(case["status"], PodStatus))
    return _by_name(convert(case["expected"], PodStatus)), _by_name(got)


def _by_name(status: PodStatus) -> PodStatus:
    lists = ("init_container_statuses", "container_statuses", "ephemeral_container_statuses")
    return replace(status, **{name: tuple(sorted(getattr(status, name), key=lambda s: s.name)) for name in lists})


def _terminate_pod(case: Json) -> Result:
    """Without the start time, which upstream sets with the first status of a pod, of whatever kind."""
    of = case["pod"]
    status = convert(case["cached"] or of["status"], PodStatus)
    got = replace(terminate_pod(pod(of).spec, status), start_time=None)
    return _plain(replace(convert(case["expected"], PodStatus), start_time=None)), _plain(got)


def _plain(status: PodStatus) -> PodStatus:
    """Without ``started``: upstream leaves what it was, and here a container that has ended has not started."""
    lists = ("init_container_statuses", "container_statuses")
    return replace(
        status, **{name: tuple(replace(one, started=None) for one in getattr(status, name)) for name in lists}
    )


def _set_container_readiness(case: Json) -> Result:
    """Conditions that follow from the flag, which here a sync sets (`supervisor/status/containers`)."""
    spec, cached, expected = pod(case["pod"]).spec, *(convert(case[name], PodStatus) for name in ("cached", "expected"))
    statuses = tuple(
        replace(status, ready=case["ready"]) if status.container_id == case["container_id"] else status
        for status in cached.container_statuses
    )
    if statuses == cached.container_statuses:
        raise Later("never: conditions that do not follow from the flags beside them, left alone as no flag changes")
    made = (
        conditions.pod_ready(spec, cached.conditions, statuses, cached.phase),
        conditions.containers_ready(spec, statuses, cached.phase),
    )
    return (expected.container_statuses, _told(expected.conditions)), (statuses, _told(made))


def _set_container_startup(case: Json) -> Result:
    """Here a probe's result sets the flag (`supervisor/status/containers`); Ready does not follow from it alone."""
    flag, of = case["started"], case["container_id"]
    spec, cached, expected = pod(case["pod"]).spec, *(convert(case[name], PodStatus) for name in ("cached", "expected"))
    statuses = tuple(
        replace(status, started=flag) if status.container_id == of else status for status in cached.container_statuses
    )
    made = conditions.pod_ready(spec, cached.conditions, statuses, cached.phase)
    wanted = [(one.type, one.status) for one in expected.conditions]
    return (expected.container_statuses, wanted), (statuses, [(made.type, made.status)])


def _told(made: Iterable[PodCondition]) -> list[tuple[str, ...]]:
    return [(one.type, one.status, one.reason, one.message) for one in made]


def _update_last_transition_time(case: Json) -> Result:
    before = [convert(case["old_condition"], PodCondition)] if case["old_condition"] else []
    made = [convert(case["condition"], PodCondition)] if case["condition"] else []
    dated = with_transition_times(made, before, 1, _NOW)
    return case["expect_now"], any(condition.last_transition_time == _NOW for condition in dated)


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "pod_phase": _pod_phase,
    "condition_containers_ready": _containers_ready,
    "condition_pod_initialized": _initialized,
    "condition_pod_ready": _pod_ready,
    "condition_ready_to_start_containers": _ready_to_start_containers,
    "condition_all_containers_restarting": _all_containers_restarting,
    "convert_to_api_container_statuses": _convert_to_api_container_statuses,
    "pod_qos": _pod_qos,
    "effective_grace_period": _effective_grace_period,
    "status_merge_pod_status": _merge_pod_status,
    "status_normalize": _normalize_status,
    "status_terminate_pod": _terminate_pod,
    "status_set_container_readiness": _set_container_readiness,
    "status_set_container_startup": _set_container_startup,
    "status_update_last_transition_time": _update_last_transition_time,
}
