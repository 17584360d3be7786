"""Resources that a node keeps from its pods, and what is left for them. Pure.

Mirrors pkg/kubelet/cm/node_container_manager_linux.go (GetNodeAllocatableReservation, getNodeAllocatableAbsolute,
validateNodeAllocatable) and hardEvictionReservation (pkg/kubelet/cm/helpers.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from ipc.k8s.api.quantity import Amount, add, format_quantity, parse_amount
from ipc.k8s.eviction.signals import Signal
from ipc.k8s.eviction.thresholds import Threshold

Resources = Mapping[str, str]
"""Quantity by resource."""
_RESOURCES: Final[Mapping[Signal, str]] = {
    Signal.MEMORY_AVAILABLE: "memory",
    Signal.NODEFS_AVAILABLE: "ephemeral-storage",
}
"""Thresholds that keep something of a resource from pods."""


def reservation(capacity: Resources, reserved: Iterable[Resources], thresholds: Iterable[Threshold]) -> dict[str, str]:
    """All that is kept from pods: ``reserved`` for others (systemReserved, kubeReserved), and what has to be free lest
    pods are evicted. A resource of which nothing is reserved is absent."""
    stated = list(reserved)
    kept = [
        (name, threshold.value.of(parse_amount(capacity[name])))
        for threshold in thresholds
        if threshold.is_hard and (name := _RESOURCES.get(threshold.signal, "")) in capacity
    ]
    result: dict[str, str] = {}
    for name in capacity:
        amounts = [parse_amount(each[name]) for each in stated if name in each]
        amounts += [amount for resource, amount in kept if resource == name]
        if amounts and (total := _sum(amounts)).value:
            result[name] = str(total)
    return result


def without(capacity: Resources, reserved: Resources) -> dict[str, str]:
    """The rest of each resource, at least nothing."""
    return {name: rest(amount, reserved.get(name)) for name, amount in capacity.items()}


def rest(amount: str, reserved: str | None) -> str:
    """The rest of an amount, at least nothing."""
    if reserved is None:
        return amount
    left = max(Fraction(0), parse_amount(amount).value - parse_amount(reserved).value)
    return format_quantity(left, parse_amount(amount).notation)


def reservation_problem(capacity: Resources, reserved: Resources) -> str:
    """Error about a reservation of more than there is; empty when there is none."""
    return "; ".join(
        f"resource {name!r} has a reservation of {amount} but a capacity of {capacity[name]}"
        for name, amount in reserved.items()
        if parse_amount(amount).value > parse_amount(capacity[name]).value
    )


def _sum(amounts: list[Amount]) -> Amount:
    total = amounts[0]
    for amount in amounts[1:]:
        total = add(total, amount)
    return total
