"""Memory that each process of the agent may take: the budgets of docs/performance.md. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KIB: Final = 1024
"""In a MiB."""
ALL: Final = "all"
MASTER, ZYGOTE, NODE, API, DIALER, PODS = ROLES = ("master", "zygote", "node", "api", "dial", "pods")
LOOKED_AT: Final = "looked at"
LEFT_ALONE: Final = "left alone"
BUDGETS: Final[Mapping[str, Mapping[str, float]]] = {
    LOOKED_AT: {MASTER: 18, ZYGOTE: 11.5, NODE: 14.5, API: 22.5, DIALER: 7.5, PODS: 14.5},
    LEFT_ALONE: {MASTER: 20.5, ZYGOTE: 14.5, NODE: 17, PODS: 16.5},
}
"""MiB of PSS without a pod; together 88.5 and 68.5: with 60 pods the aims, 92 and 72."""
KIB_PER_POD: Final[Mapping[str, float]] = {MASTER: 15, NODE: 15, API: 15, PODS: 15}
"""Memory that a pod may add to each."""


def base(state: str, role: str) -> float | None:
    """MiB of PSS that a role may take without a pod, or all of them; None for one that has no budget in that state."""
    return sum(BUDGETS[state].values()) if role == ALL else BUDGETS[state].get(role)


def per_pod(role: str) -> float:
    """MiB that a pod may add to a role, or to all of them."""
    return (sum(KIB_PER_POD.values()) if role == ALL else KIB_PER_POD.get(role, 0.0)) / KIB


def budget(state: str, role: str, pods: int) -> float:
    """MiB of PSS that a role may take with so many pods, or all of them."""
    if role == ALL:
        return sum(budget(state, each, pods) for each in BUDGETS[state])
    return (base(state, role) or 0.0) + per_pod(role) * pods
