"""Attempts of probes in the simulation: slow, hanging, refused, or true to the container."""

from __future__ import annotations

import asyncio
import random
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.probe import ExecAction, Probe
from ipc.k8s.kubecontainer.probe_results import ProbeType
from tests.sim.runtime import Caller, SimPodman
from tests.sim.watch_probes import ProbeWatch
from workers.prober.manager import Attempt
from workers.prober.outcome import Answer, ProbeError, ProbeOutcome, ProbeTarget

HEALTHY: Final = "healthy"
FLAKY: Final = "flaky"
NEVER: Final = "never"
SLOW_TO_START: Final = "slow-to-start"
STARTS_AFTER_S: Final = 6.0
"""How long a container runs before a probe of that kind succeeds."""


class ProbeOdds(msgspec.Struct, frozen=True, kw_only=True):
    """How likely each misfortune of one attempt is."""

    fails: float = 0.0
    errs: float = 0.0
    hangs: float = 0.0
    is_slow: float = 0.0


CALM: Final = ProbeOdds()
ROUGH: Final = ProbeOdds(fails=0.15, errs=0.1, hangs=0.05, is_slow=0.2)
FLAKINESS: Final = 0.3
LATENCY_S: Final = 0.05


class SimProbes:
    """The world that probes ask."""

    def __init__(self, podman: SimPodman, rng: random.Random, watch: ProbeWatch) -> None:
        self.odds = CALM
        self._podman = podman
        self._rng = rng
        self._watch = watch

    def by(self, caller: Caller) -> Attempt:
        """Attempts of one worker."""

        async def attempt(probe: Probe, target: ProbeTarget) -> ProbeOutcome:
            await caller.turn()
            kind = kind_of(probe)
            self._watch.begins(caller, target.container_id, kind)
            try:
                outcome = await self._carry_out(caller, probe, target)
            finally:
                self._watch.is_over(caller, target.container_id, kind)
            self._watch.answered(caller, target.container_id, target.container, kind, outcome.answer)
            return outcome

        return attempt

    async def _carry_out(self, caller: Caller, probe: Probe, target: ProbeTarget) -> ProbeOutcome:
        rng, odds, timeout_s = self._rng, self.odds, float(probe.timeout_seconds)
        if rng.random() < odds.hangs:
            await asyncio.sleep(timeout_s * rng.choice((1.0, 1.0, 60.0)))
            return ProbeOutcome(Answer.FAILURE, f"no answer within {timeout_s:g} s")
        await asyncio.sleep(rng.uniform(0.001, timeout_s if rng.random() < odds.is_slow else LATENCY_S))
        await caller.turn()
        if rng.random() < odds.errs:
            raise ProbeError("an injected error")
        if rng.random() < odds.fails:
            return ProbeOutcome(Answer.FAILURE, "an injected failure")
        return ProbeOutcome(Answer.SUCCESS if self._is_well(probe, target.container_id) else Answer.FAILURE)

    def _is_well(self, probe: Probe, id: str) -> bool:
        container = self._podman.containers.get(id)
        if container is None or container.state != "running":
            return False
        age_s = self._podman.clock.now().wall - container.started_at
        return {
            HEALTHY: True,
            FLAKY: self._rng.random() >= FLAKINESS,
            NEVER: False,
            SLOW_TO_START: age_s >= STARTS_AFTER_S,
        }[health_of(probe)]


def kind_of(probe: Probe) -> ProbeType:
    assert probe.exec is not None
    return ProbeType(probe.exec.command[0])


def health_of(probe: Probe) -> str:
    """Health that it finds in a container that runs."""
    assert probe.exec is not None
    return probe.exec.command[1]


def with_probes(rng: random.Random, container: Container) -> Container:
    """Some, or none."""
    probes = {
        "startup_probe": _probe(rng, ProbeType.STARTUP, (HEALTHY, SLOW_TO_START, SLOW_TO_START, NEVER)),
        "liveness_probe": _probe(rng, ProbeType.LIVENESS, (HEALTHY, HEALTHY, HEALTHY, FLAKY, NEVER)),
        "readiness_probe": _probe(rng, ProbeType.READINESS, (HEALTHY, HEALTHY, SLOW_TO_START, FLAKY, NEVER)),
    }
    return msgspec.structs.replace(container, **{name: probe for name, probe in probes.items() if rng.random() < 0.4})


def _probe(rng: random.Random, kind: ProbeType, healths: tuple[str, ...]) -> Probe:
    health = rng.choice(healths)
    patient = kind is ProbeType.STARTUP and health == SLOW_TO_START
    return Probe(
        exec=ExecAction(command=(kind.value, health)),
        initial_delay_seconds=rng.choice((0, 0, 2, 15)),
        period_seconds=rng.choice((1, 3, 10)),
        timeout_seconds=rng.choice((1, 1, 5)),
        success_threshold=rng.choice((1, 2)) if kind is ProbeType.READINESS else 1,
        failure_threshold=10 if patient else rng.choice((1, 3, 3)),
        termination_grace_period_seconds=None if kind is ProbeType.READINESS else rng.choice((None, 2)),
    )
