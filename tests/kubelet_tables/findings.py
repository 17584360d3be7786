"""Knowledge of groups, fields and cases beside what their adapters do with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ABOUT_A_CASE: Final = frozenset(
    {"name", "source", "source_test", "note", "also_run_from", "feature_gates", "feature_gates_verified"}
)
"""Fields that say where a case is from; a gate that matters is read by the group's adapter."""

_OF_THE_NEW_OBJECT: Final = "they are about the new object alone"

UNREAD: Final[Mapping[str, Mapping[str, str]]] = {
    "convert_to_api_container_statuses": {"has_init_containers": "the pod says so"},
    "describe": {
        "namespace": "the object says so",
        "substrings": "they are parts of the output",
    },
    "expand_subpath_expr": {"expected_ok": "it is there that the error is"},
    "make_environment_variables": {
        "error_in_go": "our words are our own",
        "expected_event": "our words are our own",
        "pod_ip": "the first of pod_ips",
    },
    "allocation_can_admit": {
        "operation": "the room that there is, is the same",
        "pod_level_resize": "all gates are on",
    },
    "resize_do_pod_action": {
        "expected_error": "errors come of the calls, which are others here",
        "expected_message": "errors come of the calls, which are others here",
        "pod_level_current": "current_pod says it",
        "pod_level_resize": "the steps are the same",
    },
    "validate_pod_update": {"options": _OF_THE_NEW_OBJECT},
    "validate_pod_status_update": {"options": _OF_THE_NEW_OBJECT},
    "validate_pod_ephemeral_containers_update": {"options": _OF_THE_NEW_OBJECT},
    "validate_pod_resize": {"errors": "ours are fewer: other fields may change too", "options": "all gates are on"},
    "label_selector_parse": {"requirements": "null where an error is expected"},
    "node_machine_info": {
        "disable_local_storage_capacity_isolation": "changes nothing in the expected nodes",
    },
    "oom_score_adj": {
        "expected_high": "actual_in_go lies between",
        "expected_low": "actual_in_go lies between",
    },
    "status_set_container_readiness": {"now": "times are kept by `status_update_last_transition_time`"},
    "status_set_container_startup": {"now": "times are kept by `status_update_last_transition_time`"},
    "status_terminate_pod": {
        "now": "the start time is there when a pod ends: its sandbox or its first status dates it"
    },
    "status_set_pod_status": {"pod": "the cached status is of it", "now": "it dates only what is not cached yet"},
    "status_merge_pod_status": {
        "now": "conditions are generated with the phase that they fit",
        "pod": "conditions are generated with the phase that they fit",
    },
}
"""Group -> field that its adapter leaves aside on purpose -> why."""

CONTRADICTIONS: Final[Mapping[tuple[str, str], str]] = {
    (
        "describe",
        "TestDescribeEvents: PersistentVolumeDescriber",
    ): "its events are about no object: only a client that does not filter finds them",
}
"""(Group, case) -> in what the case contradicts the source that it names."""

NOT_BUILT: Final[Mapping[str, str]] = {
    "label_sets": "label maps of workload controllers",
    "label_selector_string": "selectors that are printed: none is",
    "label_requirement": "selectors in the fields of workload controllers",
    "hugepage_": "the hugetlb controller, which systemd delegates to no user",
    "pod_full_name": "names of the form NAME_NAMESPACE: upstream finds the mirror of a static pod by one, and nothing"
    " else reads it; here the mirror is found by namespace and name, which are not joined, so nothing takes them apart",
    "deployment_": "workload controllers",
    "cronjob_": "workload controllers",
    "job_": "workload controllers",
}
"""How the names of groups begin -> the work that they wait for. The first that fits counts."""
