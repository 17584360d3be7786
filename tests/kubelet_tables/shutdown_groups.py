"""Adapters of the groups about the end of the node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.scheduling.priority import pod_priority
from supervisor.config.settings import ShutdownGraceItem
from supervisor.managers.node_shutdown import by_two_periods, grace_in_group, group_by_priority
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, pod


def _migrate_config(case: Json) -> Result:
    got = [
        {"priority": item.priority, "shutdown_grace_period_seconds": item.shutdown_grace_period_seconds}
        for item in by_two_periods(case["requested_s"], case["critical_s"])
    ]
    return case["expected"] or [], got


def _group_by_priority(case: Json) -> Result:
    classes = [ShutdownGraceItem(**item) for item in case["config"]]
    groups = group_by_priority(classes, _priorities(map(pod, case["pods"])))
    got = [
        {
            "priority": group.priority,
            "shutdown_grace_period_seconds": group.grace_period_s,
            "pods": list(group.uids),
        }
        for group in groups
    ]
    return [{**group, "pods": group["pods"] or []} for group in case["expected"]], got


def _manager(case: Json) -> Result:
    """Grace periods by pod. Whether logind's limit can be raised is no decision of ours: it never can."""
    for name in ("system_inhibit_delay_s", "override_system_inhibit_delay_s", "expected_override", "expected_statuses"):
        case[name]
    if case["expected_error"]:
        raise Later("upstream gives up where InhibitDelayMaxSec is too short; here the groups share it")
    pods = {_name(found): found for found in map(pod, case["pods"])}
    groups = group_by_priority(by_two_periods(case["requested_s"], case["critical_s"]), _priorities(pods.values()))
    got = {uid: grace_in_group(pods[uid], group) for group in groups for uid in group.uids}
    return case["expected_grace_s"], got


def _priorities(pods: Iterable[Pod]) -> dict[str, int]:
    return {_name(each): pod_priority(each) for each in pods}


def _name(of: Pod) -> str:
    return of.metadata.name


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "node_shutdown_migrate_config": _migrate_config,
    "node_shutdown_group_by_priority": _group_by_priority,
    "node_shutdown_manager": _manager,
}
