"""Children that the agent has."""

from __future__ import annotations

from ipc.wire.boot import Role
from supervisor.processes.podman_service import PodmanService
from supervisor.processes.worker_pool import (
    API_SLOT,
    DIALER_SLOT,
    FIRST_POD_SLOT,
    NODE_SLOT,
    PODMAN_SLOT,
    QUARANTINE_SLOT,
    ChildSpec,
)


def child_specs(service: PodmanService, pod_workers: int, *, quarantine: bool = False) -> list[ChildSpec]:
    """Every child of the agent, as declared. ``quarantine``: a pod worker more, for pods that kill theirs."""
    specs = [
        ChildSpec(NODE_SLOT, Role.NODE_WORKER, "node"),
        ChildSpec(API_SLOT, Role.API_SERVER, "api", on_demand=True),
        ChildSpec(DIALER_SLOT, Role.DIALER, "dialer", on_demand=True),
    ]
    if service.argv:
        specs.insert(0, ChildSpec(PODMAN_SLOT, Role.EXEC, "podman", service.argv, service.env, heartbeat=False))
    if quarantine:
        specs.append(ChildSpec(QUARANTINE_SLOT, Role.POD_WORKER, "quarantine", expendable=True))
    return specs + [ChildSpec(FIRST_POD_SLOT + n, Role.POD_WORKER, f"pods-{n}") for n in range(pod_workers)]
