"""Another host that takes itself for the same node: a clone, with the same kubeconfig, name and manifests, and a Podman
of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from tests.sim.cluster.master import NodeAgent
from tests.sim.cluster.network import SimConnection, SimNetwork
from tests.sim.cluster.rules import ServerRules
from tests.sim.cluster.server import SimServer
from tests.sim.cluster.values import PodValues
from tests.sim.given import Given
from tests.sim.host import SimHost
from tests.sim.loop import OWNER
from tests.sim.pods import PRESENT, PROGRAMS, PULLED
from tests.sim.pressure import Marks
from tests.sim.probes import SimProbes
from tests.sim.runtime import SimPodman
from tests.sim.trace import Trace
from tests.sim.watch import Watch
from tests.sim.worker_settings import worker_settings
from workers.kubeclient import connection_pool


class Twin:
    """The host, its agent, and its way to the server."""

    def __init__(
        self, given: Given, rules: ServerRules, server: SimServer, values: PodValues, trace: Trace, directory: Path
    ) -> None:
        """``given`` and ``rules``: those of the first host."""
        rng, clock = given.rng, given.clock
        watch = Watch(trace, clock, lambda uid: self.agent.in_flight.get(uid))
        watch.excused = given.watch.excused
        self.podman = podman = SimPodman(clock, rng, watch, images=[PRESENT], registry=PULLED)
        podman.commands.update(PROGRAMS)
        watch.podman = podman
        self.rules = rules.of_twin(podman)
        self.network = SimNetwork(rng, server, lambda text: trace.note(f"twin: {text}"), self.rules)
        own = worker_settings(directory)
        settings = msgspec.structs.replace(
            given.worker_settings,
            pod_logs_dir=own.pod_logs_dir,
            pods_dir=own.pods_dir,
            inspect_file=own.inspect_file,
            image_records_file=own.image_records_file,
            memory_dir=str(directory / "memory"),
        )
        host = SimHost(rng, podman, clock)
        host.is_quiet = True
        self._given = msgspec.structs.replace(
            given,
            watch=watch,
            podman=podman,
            probes=SimProbes(podman, rng, watch.probes),
            host=host,
            marks=Marks(trace),
            worker_settings=settings,
        )
        self.agent = NodeAgent(self._given, self.rules, values, directory / "desired.json")

    @contextlib.contextmanager
    def connected(self, first: SimNetwork) -> Iterator[None]:
        """Connections of each agent's children go by its own network."""

        async def connect(*address: Any) -> SimConnection:
            is_ours = OWNER.get() in self.agent.children.values()
            return await (self.network if is_ours else first).connect(*address)

        with patch.object(connection_pool, "connect", connect):
            yield
