"""Capacity and allocatable resources (setters.go, MachineInfo)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import msgspec

from ipc.k8s.api.default_resources import is_extended
from ipc.k8s.api.quantity import Notation, format_quantity
from ipc.k8s.nodestatus.allocatable import rest
from ipc.k8s.nodestatus.node import NodeEvent, NodeStatus, SwapInfo
from ipc.k8s.podresources.node_resources import NodeResources
from workers.statsapi.machine_info import MachineInfo

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
HUGE_PAGES: Final = "hugepages-"


class NodeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that limit the node."""

    max_pods: int
    pods_per_core: int = 0
    """0 is no limit."""
    capacity: Mapping[str, str] = {}
    """Resources that the machine's hardware does not tell, such as ephemeral-storage."""
    reserved: Mapping[str, str] = {}
    """Kept from pods."""


def node_limits(node: NodeResources, max_pods: int, unhealthy_devices: Mapping[str, str]) -> NodeLimits:
    """Limits of this node's settings and of what the master has found out. ``unhealthy_devices``: numbers of them as
    they are now, by resource."""
    others = {name: amount for name, amount in node.reserved.items() if name not in node.devices}
    return NodeLimits(
        max_pods=max_pods,
        capacity={name: amount for name, amount in node.capacity.items() if name not in (CPU, MEMORY)},
        reserved={**others, **unhealthy_devices},
    )


def set_machine_info(
    status: NodeStatus, machine: MachineInfo | None, limits: NodeLimits, node_name: str
) -> tuple[NodeStatus, tuple[NodeEvent, ...]]:
    """The status with the machine's resources, and the event of a reboot. ``machine`` is None when it could not be
    read: then there is nothing to give."""
    if machine is None:
        capacity = {**status.capacity, CPU: "0", MEMORY: "0", PODS: str(limits.max_pods)}
        return _with_resources(status, capacity, limits), ()
    info = status.node_info
    capacity = {
        **status.capacity,
        CPU: str(machine.num_cores),
        MEMORY: _binary(Fraction(machine.memory_capacity or 0)),
        PODS: str(_pods(machine, limits)),
        **limits.capacity,
    }
    rebooted = NodeEvent("Warning", "Rebooted", f"Node {node_name} has been rebooted, boot id: {machine.boot_id}")
    set_ = msgspec.structs.replace(
        info,
        machine_id=machine.machine_id,
        system_uuid=machine.system_uuid,
        boot_id=machine.boot_id,
        swap=SwapInfo(capacity=machine.swap_capacity) if machine.swap_capacity else None,
    )
    is_rebooted = info.boot_id not in ("", machine.boot_id)
    changed = msgspec.structs.replace(status, node_info=set_)
    return _with_resources(changed, capacity, limits), (rebooted,) if is_rebooted else ()


def _pods(machine: MachineInfo, limits: NodeLimits) -> int:
    per_core = machine.num_cores * limits.pods_per_core
    return min(per_core, limits.max_pods) if limits.pods_per_core > 0 else limits.max_pods


def _with_resources(status: NodeStatus, capacity: Mapping[str, str], limits: NodeLimits) -> NodeStatus:
    kept = {name: amount for name, amount in status.allocatable.items() if name in capacity or not is_extended(name)}
    allocatable = {**kept, **{name: rest(amount, limits.reserved.get(name)) for name, amount in capacity.items()}}
    for name, amount in capacity.items():
        if name.startswith(HUGE_PAGES):  # they are memory, too, that nothing else can have
            allocatable[MEMORY] = rest(allocatable[MEMORY], amount)
    return msgspec.structs.replace(status, capacity=capacity, allocatable=allocatable)


def _binary(bytes_: Fraction) -> str:
    return format_quantity(bytes_, Notation.BINARY)
