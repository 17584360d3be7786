"""Adapters of the groups about the node's status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from ipc.k8s.nodestatus.conditions import REQUIRED, set_pressure, set_ready
from ipc.k8s.nodestatus.node import NodeCondition, NodeEvent, NodeStatus
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json
from workers.nodestatus.images import StoredImage, node_images
from workers.nodestatus.machine import NodeLimits, set_machine_info
from workers.nodestatus.version import HostVersions, set_versions
from workers.statsapi.machine_info import MachineInfo

NODE_NAME: Final = "test-node"


def _status(case: Json) -> NodeStatus:
    return msgspec.convert(case["node"].get("status", {}), NodeStatus)


def _shown(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _set_fields(status: NodeStatus) -> Json:
    """Fields of a status that are set: what is empty is unset."""
    return {name: value for name, value in _shown(status).items() if value}


def _events(events: tuple[NodeEvent, ...]) -> list[dict[str, str]]:
    return [{"event": e.reason, "event_type": e.type, "message": e.message} for e in events]


def _node_machine_info(case: Json) -> Result:
    """The agent always tells of ephemeral storage: whether it is isolated changes nothing here, as upstream."""
    given = case["machine_info"]
    machine = msgspec.convert({"num_cores": 0, **given}, MachineInfo) if given is not None else None
    assert (case["machine_info_error"] is not None) == (machine is None)
    limits = NodeLimits(
        max_pods=case["max_pods"],
        pods_per_core=case["pods_per_core"],
        capacity=case["capacity"] or {},
        reserved=case["node_allocatable_reservation"] or {},
    )
    status, events = set_machine_info(_status(case), machine, limits, NODE_NAME)
    return (case["expected"]["status"], case["expected_events"]), (_set_fields(status), _events(events))


def _node_version_info(case: Json) -> Result:
    if case["version_info_error"] is not None:
        raise Later("never: the host's versions are read from files, and one that is not there is empty")
    host = HostVersions(
        kernel=case["version_info"].get("kernel_version", ""),
        os_image=case["version_info"].get("container_os_version", ""),
    )
    expected = case["expected"]["status"]
    assert (case["runtime_version_error"] is not None) == (case["runtime_version"] is None)
    status = set_versions(
        NodeStatus(),
        host,
        runtime=case["runtime_type"],
        runtime_version=case["runtime_version"] or "",
        kubelet_version=expected["nodeInfo"]["kubeletVersion"],
    )
    # Told since Kubernetes 1.37; the cases are older.
    info = msgspec.structs.replace(status.node_info, running_in_user_namespace=None)
    return (case["expect_error"], expected), (None, _shown(msgspec.structs.replace(status, node_info=info)))


def _node_images(case: Json) -> Result:
    if case["error"] is not None:
        return case["expected"] or [], _shown(node_images([], case["max_images"]))
    images = [
        StoredImage(
            id=image.get("id", ""),
            size=image["size"],
            repo_tags=tuple(image["repo_tags"] or ()),
            repo_digests=tuple(image["repo_digests"] or ()),
        )
        for image in case["images"]
    ]
    return case["expected"], _shown(node_images(images, case["max_images"]))


def _conditions(case: Json) -> tuple[NodeCondition, ...]:
    return _status(case).conditions


def _node_ready_condition(case: Json) -> Result:
    names = ("runtime_errors", "network_errors", "storage_errors", "node_shutdown_manager_errors")
    is_disabled = case["disable_local_storage_capacity_isolation"]
    conditions, events = set_ready(
        _conditions(case),
        errors=[case[name] or "" for name in names],
        capacity=_status(case).capacity,
        now=case["now"],
        required=[name for name in REQUIRED if name != "ephemeral-storage" or not is_disabled],
        warning=case["cm_status"]["soft_requirements"] or "",
    )
    return (case["expected_conditions"], case["expected_events"]), (_shown(conditions), _events(events))


def _node_pressure_condition(case: Json) -> Result:
    conditions, events = set_pressure(_conditions(case), case["kind"], pressure=case["pressure"], now=case["now"])
    return (case["expected_conditions"], case["expected_events"]), (_shown(conditions), _events(events))


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "node_machine_info": _node_machine_info,
    "node_version_info": _node_version_info,
    "node_images": _node_images,
    "node_ready_condition": _node_ready_condition,
    "node_pressure_condition": _node_pressure_condition,
}
