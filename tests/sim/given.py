"""Everything that outlives an agent of the simulation, or with which it is configured."""

from __future__ import annotations

import random

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.wire.boot import WorkerSettings
from supervisor.config.settings import Settings
from tests.sim.claims import SimClaims
from tests.sim.host import SimHost
from tests.sim.objects import SimObjects
from tests.sim.poison import Poison
from tests.sim.pressure import Marks
from tests.sim.probes import SimProbes
from tests.sim.resizes import SentAllocations
from tests.sim.runtime import SimPodman
from tests.sim.shutdowns import SimShutdown
from tests.sim.trace import Trace
from tests.sim.watch import Watch


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Gifts that outlive the agent, or with which it is configured."""

    rng: random.Random
    trace: Trace
    watch: Watch
    podman: SimPodman
    probes: SimProbes
    poison: Poison | None
    claims: SimClaims | None = None
    shutdown: SimShutdown | None = None
    objects: SimObjects
    allocations: SentAllocations = msgspec.field(default_factory=SentAllocations)
    host: SimHost
    marks: Marks
    clock: Clock
    settings: Settings
    worker_settings: WorkerSettings
    pod_rows: int
    node: NodeResources = NodeResources()
