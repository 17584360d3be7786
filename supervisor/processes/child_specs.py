"""Children that the agent has."""

from __future__ import annotations

from typing import Final

from ipc.link.messages.zygote import Spawn
from ipc.link.wire.boot import Role
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

FIRST_INCARNATION: Final = 1
"""Number of a slot's first incarnation."""


def service_spec(service: PodmanService) -> ChildSpec | None:
    """Podman's service, where it is a child of ours."""
    if not service.argv:
        return None
    return ChildSpec(PODMAN_SLOT, Role.EXEC, "podman", service.argv, service.env, heartbeat=False)


def exec_spawn(spec: ChildSpec, incarnation: int = FIRST_INCARNATION) -> Spawn:
    """Command for a child that becomes another program."""
    return Spawn(slot=spec.slot, incarnation=incarnation, role=spec.role, argv=spec.argv, env=spec.env)


def child_specs(service: PodmanService, pod_workers: int, *, quarantine: bool = False) -> list[ChildSpec]:
    """Every child of the agent, as declared. ``quarantine``: a pod worker more, for pods that kill theirs."""
    specs = [
        ChildSpec(NODE_SLOT, Role.NODE_WORKER, "node"),
        ChildSpec(API_SLOT, Role.API_SERVER, "api", on_demand=True),
        ChildSpec(DIALER_SLOT, Role.DIALER, "dialer", on_demand=True),
    ]
    if (own := service_spec(service)) is not None:
        specs.insert(0, own)
    if quarantine:
        specs.append(ChildSpec(QUARANTINE_SLOT, Role.POD_WORKER, "quarantine", expendable=True))
    return specs + [ChildSpec(FIRST_POD_SLOT + n, Role.POD_WORKER, f"pods-{n}") for n in range(pod_workers)]
