"""Whether a load fits on the node, before anything is started. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ipc.api.v1.status import TERMINAL_PHASES
from ipc.text.json_types import Json

PROCESSES_BYTES: Final = 7 * 1024**2
"""Memory of a pod's conmon and network process, measured with 300 pods (2.1 GiB)."""


def refusal(node: Json, pods: Iterable[Json], wanted: int, available_bytes: int) -> str:
    """Why so many more pods cannot all run beside those that are there; empty when they can.

    ``available_bytes``: memory that the host has left.
    """
    if node.get("spec", {}).get("unschedulable"):
        return "the node takes no pods: it is drained; see 'rootlet uncordon'"
    most = int(node.get("status", {}).get("allocatable", {}).get("pods", wanted))
    there = sum(pod.get("status", {}).get("phase") not in TERMINAL_PHASES for pod in pods)
    if wanted > most - there:
        return (
            f"{wanted} pods do not fit: the node takes {most} pods, and {there} are there; "
            f"--pods {max(0, most - there)} fits, and maxPods in the agent's configuration is the limit"
        )
    if (needed := wanted * PROCESSES_BYTES) > available_bytes:
        return (
            f"{wanted} pods do not fit: their monitors and networks alone take {needed // 1024**2} MiB, "
            f"and {available_bytes // 1024**2} MiB of memory are left; --pods {available_bytes // PROCESSES_BYTES} fits"
        )
    return ""
