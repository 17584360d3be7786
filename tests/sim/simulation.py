"""A host, an agent, and everything that may go wrong between them: one seed, one thread, no time of its own.

The real sync loop, board, pod workers and node worker run on simulated time against a Podman in memory. First there
is noise: pods come, change and go while processes die, calls fail and hosts reboot. Then it is quiet, and everything
has to come to what is wanted within a bound. Then everything is taken down, and nothing may be left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.api.v1.pod import Pod
from ipc.api.v1.status import ContainerStatus
from ipc.kubecontainer.pod_failure import EVICTED
from ipc.messages.api_server import PodChanged
from ipc.messages.pod_worker import Freeze, WorkType
from ipc.podresources.node_resources import NodeResources, PodCgroups
from ipc.podresources.pod_cgroups import pod_slice_uid
from supervisor.config.settings import CrashLoopBackOffSettings, Seconds, Settings, WorkersSettings
from supervisor.syncloop.pod_admission import PREEMPTED
from tests.fakes.clock import SimClock
from tests.fakes.ownership import ownership
from tests.fakes.podman import FakeContainer
from tests.sim import preemption, pressure, restarts, shutdowns
from tests.sim.agent import POD_SLOTS, SLOTS, Agent, Given
from tests.sim.children import HUNG_S
from tests.sim.claim_scenario import ClaimScenario
from tests.sim.claims import VOLUME_OF, SimClaims
from tests.sim.faults import ERRORS, RETRIED_S, Faults, Place
from tests.sim.frame import DOWN_S, SETTLE_S, STEP_S, Frame, Outcome, outcome_of
from tests.sim.host import CAPACITY, SimHost, Taken
from tests.sim.loop import NOBODY
from tests.sim.objects import SimObjects, stale_objects
from tests.sim.oracle import MAX_BACKOFF_S, complaints
from tests.sim.pods import ABSENT, PRESENT, PROGRAMS, PULLED, PodMaker
from tests.sim.poison import UID as POISON
from tests.sim.poison import Poison
from tests.sim.pressure import EVICTED_S, LEAST
from tests.sim.probes import CALM, ROUGH, SimProbes
from tests.sim.resizes import NODE, Sizes
from tests.sim.runtime import INSTANCE, LATE_EFFECT_S, NOISY, QUIET, SimPodman, uid_of
from tests.sim.shutdowns import SimShutdown, with_shutdown_grace
from tests.sim.trace import Trace
from tests.sim.watch import Watch, every_status
from tests.sim.worker_settings import worker_settings
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.specgen.spec import pod_spec

PODS_PER_WORKER: Final = 2
"""So that the second pod worker comes and goes."""
WALL: Final = 1_500_000_000.0
"""Before any real file was made: what the collector of directories compares with file dates never is older than those
until the clock jumps (`Simulation._collect_directories`)."""
PULL_S: Final = (0.5, 3.0, 40.0)
"""How long pulls take; the first while nothing is wrong, lest a pod that pulls for each of its restarts only waits."""
ROTATION_S: Final = 10.0
"""Within which a changed ConfigMap is given to those that refer to it, from the end of the sync that was under way: it
may last as long, when its worker hangs until it is killed (`HUNG_S`)."""
STALE_S: Final = 45.0
"""How long something may be said to run that has ended, while nobody disturbs the agent's eyes."""
UNSLICED: Final = 0.25
"""Part of the simulations in which the slice of a pod vanishes under it."""
DRAINED: Final = 0.2
"""Part of the simulations in which the quiet node is drained."""
HOST_DOWN: Final = 0.2
"""Part of the simulations in which the quiet host goes down."""
CHECKPOINT_LOST: Final = 0.3
UNTOLD_S: Final = 5.0
"""How long a status cannot be generated while a container of its pod ends: until that was seen and acted on."""
LATE_S: Final = 5.0
"""Within which a pod worker has died as it answered, and its successor works for the same pod."""
BROKEN_S: Final = 40.0
"""Longest time that a pod meets unexpected errors."""
CANNOT_FREEZE: Final = 0.2
"""Part of the pauses that Podman refuses."""
KILLED: Final = 0.4
"""Part of the simulations in which the agent is killed while a pod gives way to a critical one."""
FILLED: Final = 0.2
"""Part of the simulations in which images are too many instead of pods too greedy."""
SQUEEZED_S: Final = 40.0
"""Longest time for which something on the host runs short because of somebody who is no pod."""
UNREADABLE_S: Final = 30.0
"""Longest time that a container cannot be inspected."""


CLAIMS: Final = 0.3
PAUSES: Final = 0.3
"""Parts of the seeds that choose these."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How large and how wild."""

    pods: int = 5
    noise_s: float = 90.0
    probes: bool = True
    objects: bool = True
    """ConfigMaps beside pods."""
    resizes: bool = True
    """Resources, and edits that change them."""
    poison: bool = True
    """One pod more, in whose steps workers hang and die."""
    pressure: bool = True
    """Memory, processes and disks that run short, and a critical pod."""
    pauses: bool | None = False
    """Somebody pauses pods and resumes them; None: the seed chooses."""
    restarts: bool = True
    """Somebody has single containers restarted."""
    claims: bool | None = False
    """PersistentVolumes and claims, which come and go and which pods have; None: the seed chooses."""
    shutdown: bool = True
    """The node is drained, and the host goes down."""
    verbose: bool = False


def chosen_by(seed: int, options: Options) -> Options:
    """The options with what is left to the seed."""
    rng = random.Random(seed + 8)
    claims, pauses = (rng.random() < part for part in (CLAIMS, PAUSES))
    return msgspec.structs.replace(
        options,
        claims=claims if options.claims is None else options.claims,
        pauses=pauses if options.pauses is None else options.pauses,
    )


def simulate_seed(seed: int, options: Options) -> Outcome:
    """Run one seed from its beginning to its end."""
    options = chosen_by(seed, options)
    scratch = Path(f"/tmp/rootlet-sim-claims-{os.getpid()}-{seed}")  # the same in every run of a process
    trace = Trace(verbose=options.verbose)
    try:
        return outcome_of(seed, trace, lambda directory: _run(seed, options, trace, directory, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _run(seed: int, options: Options, trace: Trace, directory: Path, scratch: Path) -> None:
    await Simulation(seed, options, trace, directory, scratch).run()


class Simulation(Frame):
    """The driver."""

    def __init__(self, seed: int, options: Options, trace: Trace, directory: Path, scratch: Path) -> None:
        """``scratch``: a directory below /tmp."""
        self._rng = random.Random(seed)
        self._options = options
        clock = SimClock()
        clock.wall_offset_s = WALL
        super().__init__(trace, clock)
        self._directory = directory
        probing = random.Random(seed) if options.probes else None
        self._objects = SimObjects(random.Random(seed + 2))
        self._claims: SimClaims | None = None
        self._maker = PodMaker(
            random.Random(self._rng.random()),
            probing,
            self._objects if options.objects else None,
            Sizes(random.Random(seed + 4)) if options.resizes else None,
            self._with_extras,
        )
        self._uids = [f"{n:08x}-sim" for n in range(1, options.pods + 1)]
        self._desired: dict[str, Pod] = {}
        self._edited: set[str] = set()
        self._faults = Faults(trace, self._clock)
        self._watch = Watch(trace, self._clock, lambda uid: self._agent.in_flight.get(uid))
        self._podman = SimPodman(
            self._clock, self._rng, self._watch, images=[PRESENT], registry=[*PULLED, pressure.LARGE_IMAGE]
        )
        if options.claims:
            self._claims = SimClaims(random.Random(seed + 6), trace, self._podman, scratch)
        self._watch.excused = self._faults.excuses
        self._podman.commands.update(PROGRAMS)
        self._watch.podman = self._podman
        self._probes = SimProbes(self._podman, random.Random(seed + 1), self._watch.probes)
        self._poison = Poison(random.Random(seed + 3), trace, self._podman) if options.poison else None
        if self._poison is not None:
            self._desired[POISON] = self._poison.pod()
        self._host = SimHost(random.Random(seed + 5), self._podman, self._clock)
        self._marks = pressure.Marks(trace)
        self._watch.acted = self._marks.acted
        if options.pressure:
            self._desired[pressure.CRITICAL] = pressure.critical_pod()
        settings = Settings(
            workers=WorkersSettings(count=len(POD_SLOTS), pods_per_worker=PODS_PER_WORKER),
            crash_loop_back_off=CrashLoopBackOffSettings(max_container_restart_period_s=Seconds(MAX_BACKOFF_S)),
        )
        settings = pressure.with_thresholds(settings) if options.pressure else settings
        self._shutdown: SimShutdown | None = None
        if options.shutdown:
            settings = with_shutdown_grace(settings, directory)
            rng = random.Random(seed + 7)
            self._shutdown = SimShutdown(rng, trace, self._podman, self._watch, self._clock, directory)
        self._given = Given(
            rng=self._rng,
            trace=trace,
            watch=self._watch,
            podman=self._podman,
            probes=self._probes,
            poison=self._poison,
            claims=self._claims,
            shutdown=self._shutdown,
            objects=self._objects,
            host=self._host,
            marks=self._marks,
            clock=self._clock,
            settings=settings,
            worker_settings=msgspec.structs.replace(
                worker_settings(directory),
                max_container_restart_period_s=MAX_BACKOFF_S,
                node=NODE if options.resizes else NodeResources(),
                thresholds=settings.thresholds if options.pressure else (),
            ),
            pod_rows=max(1, options.pods - 1),
            node=NODE if options.resizes else NodeResources(),
        )
        self._agent = Agent(self._given, {})

    async def run(self) -> None:
        """Raises Violation."""
        self._listen_for_errors()
        with self._faults.installed(), self._host.installed():
            self._agent.start()
            await self._make_noise()
            await self._settle()
            if self._options.pressure:
                await (self._fill_with_images() if self._rng.random() < FILLED else self._press())
            if self._options.restarts:
                await self._restart_one()
            if self._claims is not None:
                await ClaimScenario(_World(self), self._claims, self._trace, random.Random(self._rng.random())).run()
            await self._rotate()
            await self._misreport()
            await self._answer_late()
            if self._rng.random() < UNSLICED:
                await self._lose_slice()
            if self._shutdown is not None:
                if self._rng.random() < DRAINED:
                    await self._drain()
                if self._rng.random() < HOST_DOWN:
                    await self._go_down(self._shutdown)
            await self._preempt()
            await self._take_down()
            self._agent.die("the end")

    # --- the three parts ---

    async def _make_noise(self) -> None:
        self._podman.odds = NOISY
        self._probes.odds = ROUGH
        self._podman.pull_fate = self._pull_fate
        end_at = self._now + self._options.noise_s
        left_out = set() if self._options.objects else {Simulation.change_object}
        left_out |= set() if self._options.pressure else {Simulation.swell, Simulation.squeeze}
        left_out |= set() if self._options.pauses else {Simulation.pause, Simulation.resume}
        left_out |= set() if self._options.restarts else {Simulation.restart_container}
        if not self._options.shutdown:
            left_out |= {Simulation.drain, Simulation.uncordon, Simulation.go_down, Simulation.stay_up}
        left_out |= set() if self._options.claims else {Simulation.change_claim}
        acts = [act for act in NOISE if act not in left_out]
        weights = [NOISE[act] for act in acts]
        while self._now < end_at:
            await self._step(self._rng.uniform(0.0, 2 * STEP_S))
            self._rng.choices(acts, weights)[0](self)

    async def _settle(self) -> None:
        self._trace.note("quiet from here")
        self._podman.odds = QUIET
        self._probes.odds = CALM
        self._podman.pull_fate = lambda reference: None
        self._podman.pull_s = PULL_S[0]
        self._podman.revive()
        self._podman.unreadable.clear()
        self._faults.clear()
        for child in self._agent.children.values():
            if child is not None:
                child.go_on()
        self.uncordon()
        self.stay_up()
        self._objects.settle()
        if self._claims is not None:
            await self._settle_claims(self._claims)
        self._agent.state(self._desired)
        if self._options.pauses:
            await self._resume_all()
        if self._options.pressure:
            await self._recover()
        await self._come_to_rest()

    async def _settle_claims(self, claims: SimClaims) -> None:
        """Volumes whose claims were gone are nobody's until their own documents are."""
        claims.state(*VOLUME_OF, volumes=())
        self._agent.state(self._desired)
        await self._until(lambda: self._agent.sources_ready, "the agent knows what is wanted", SETTLE_S)
        claims.state(*VOLUME_OF)

    async def _restart_one(self) -> None:
        """Somebody has a container restarted: nothing but that happens, whoever dies meanwhile."""
        pod, name = restarts.steady_pod(), self._rng.choice(restarts.NAMES)
        await self._replace((), {restarts.UID: pod})
        told = self._agent.told
        await self._until(lambda: len(restarts.runs(self._agent.told.get(restarts.UID))) == 2, "both containers run")
        before = restarts.runs(told.get(restarts.UID))
        if not self._agent.restart_container(pod, name):
            self._trace.broke(f"a restart of {name} is refused, and it runs")
        if self._rng.random() < KILLED:
            await self._step(self._rng.uniform(0.0, restarts.LASTS_S))
            self._kill_agent_alone() if self._rng.random() < 0.5 else self.kill_worker()
        why = "not looked at"

        def is_restarted() -> bool:
            nonlocal why
            self.read_sources()
            why = restarts.wrong_restart(before, restarts.runs(self._agent.told.get(restarts.UID)), name)
            return not why

        await self._until(is_restarted, f"only {name} is restarted, once", restarts.RESTARTED_S)
        await self._step(restarts.AFTERWARDS_S)
        if not is_restarted():
            self._trace.broke(f"after a restart: {why}")
        await self._replace((restarts.UID,), {})

    def _kill_agent_alone(self) -> None:
        self._agent.die("killed")
        self._restart_agent(lost=False)

    async def _resume_all(self) -> None:
        """A paused pod stays paused, over deaths of the agent too, until somebody resumes it or it goes. Nobody but
        here is left who would resume one whose pause is asked for, or comes late."""
        await self._until(lambda: self._agent.sources_ready, "the agent knows what is wanted", SETTLE_S)
        none_comes_at, end_at = self._now + LATE_EFFECT_S, self._now + SETTLE_S
        while (frozen := self._frozen()) or self._now < none_comes_at:
            if self._now >= end_at:
                self._trace.broke(f"{SETTLE_S:g} s after everybody was resumed there are paused: {frozen}")
            for uid in (uid for uid in frozen if uid in self._desired):
                self._agent.freeze(self._desired[uid], Freeze.RESUME)
            await self._step(STEP_S)

    def _frozen(self) -> list[str]:
        """UIDs of pods that are paused, or are to be."""
        paused = {uid_of(c) for c in self._podman.containers.values() if c.state == "paused"}
        return sorted(paused | set(filter(self._agent.is_to_pause, self._desired)))

    async def _recover(self) -> None:
        """Nobody takes anything any more: the conditions end, and whoever was evicted is made anew."""
        self._host.calm_down()
        self._host.is_quiet = True
        await self._step(pressure.ROUND_S)
        await self._until(lambda: not self._agent.has_pressure, "the node has enough of everything", SETTLE_S)
        lost = {uid: pod for uid, pod in self._desired.items() if self._is_evicted(uid)}
        await self._replace(lost, {})
        await self._replace({}, lost)

    async def _replace(self, gone: Iterable[str], come: Mapping[str, Pod]) -> None:
        """Replace pods: these go, and nothing is left of them; then those come."""
        for uid in gone:
            del self._desired[uid]
        self._agent.state(self._desired)
        await self._until(lambda: not (self._existing() | self._agent.told.keys()) & set(gone), f"{gone} are gone")
        self._desired |= come
        self._agent.state(self._desired)

    def _is_evicted(self, uid: str) -> bool:
        told = self._agent.told.get(uid)
        return told is not None and told.status.phase == "Failed" and told.status.reason == EVICTED

    async def _press(self) -> None:
        """A pod or two take too much: they go, in their order, and nobody else does."""
        plan, host = pressure.plan(random.Random(self._rng.random())), self._host
        hogs = {uid: pressure.simple_pod(uid, priority=priority) for uid, priority in plan.hogs.items()}
        await self._replace((), hogs)
        await self._until(lambda: all(self._runs(uid) for uid in hogs), "those run that will take too much")
        self._trace.note(f"{len(hogs)} pods take too much: {plan.taken.value}, {host.layout.value}")
        before = len(self._agent.pressure.evicted)
        for uid, amount in plan.amounts(host).items():
            host.take(uid, plan.taken, amount)
        await self._until(lambda: self._agent.has_pressure, "the node has pressure")
        late = pressure.simple_pod(pressure.LATECOMER)
        await self._replace((), {pressure.LATECOMER: late})
        await self._until(lambda: self._is_evicted(pressure.LATECOMER), "the pod that came under pressure is refused")
        if plan.kills_agent:
            await self._until(lambda: len(self._agent.pressure.evicted) > before, "one is evicted")
            self._agent.die("killed while it evicts")
            self._restart_agent(lost=False)
            before = 0
        await self._until(lambda: all(map(self._is_gone, hogs)), "those that took too much are gone", EVICTED_S)
        went = self._agent.pressure.evicted[before:]
        expected = [uid for uid in hogs if uid not in self._agent.pressure.restored]
        if went != expected:
            self._trace.broke(f"{went} were evicted, and not {expected}")
        await self._until(lambda: not self._agent.has_pressure, "the node has enough again")
        await self._replace((*hogs, pressure.LATECOMER), {})
        await self._come_to_rest()

    async def _fill_with_images(self) -> None:
        """Images that nobody uses take too much: they go, and no pod does."""
        name, host = pressure.LARGE_IMAGE, self._host
        self._trace.note(f"an image takes too much, {host.layout.value}")
        await self._replace((), {pressure.IMAGE_USER: pressure.simple_pod(pressure.IMAGE_USER, image=name)})
        await self._until(lambda: self._runs(pressure.IMAGE_USER), "the pod of the large image runs")
        await self._replace((pressure.IMAGE_USER,), {})
        await self._step(2 * pressure.IMAGE_AGE_S)
        before = tuple(self._agent.pressure.evicted)
        signal = host.signal_of_images
        self._podman.image_bytes[name] = host.available(signal) - LEAST[signal] + 1
        await self._until(lambda: name not in self._podman.images, "the large image is gone")
        await self._until(lambda: not self._agent.has_pressure, "the node has enough again")
        if tuple(self._agent.pressure.evicted) != before:
            self._trace.broke(f"{self._agent.pressure.evicted} were evicted, and only images were too many")

    def _is_gone(self, uid: str) -> bool:
        """Evicted, and nothing is left of it."""
        self.read_sources()
        return self._is_evicted(uid) and not self._podman.of_pod(uid)

    def _runs(self, uid: str) -> bool:
        return any(container.state == "running" for container in self._podman.of_pod(uid))

    def _unsettled(self, before: Mapping[str, str] | None) -> Mapping[str, str]:
        """Every pod is as it is wanted, at some moment."""
        if before is None:
            return dict.fromkeys((*self._desired, *sorted(self._existing())), "not looked at")
        return {uid: why for uid in before if (why := self._complaint(uid))}

    async def _rotate(self) -> None:
        """A ConfigMap changes while all is quiet: who refers to it is synced with it soon, not when it is due."""
        self._objects.settle()
        self._agent.state(self._desired)
        free_since = dict.fromkeys(self._desired, self._now)
        end_at = self._now + SETTLE_S
        while behind := self._behind():
            free_since |= dict.fromkeys(self._agent.in_flight, self._now)
            for uid, why in behind.items():
                if self._now > min(free_since[uid] + ROTATION_S, end_at):
                    self._trace.broke(f"{ROTATION_S:g} s after a ConfigMap has changed {uid[:8]} is behind: {why}")
            await self._step(STEP_S)

    def _behind(self) -> dict[str, str]:
        """Pods whose newest sync had other ConfigMaps than there are now, and which."""
        behind = {}
        for uid, pod in self._desired.items():
            newest = self._agent.newest.get(uid)
            if uid == POISON or newest is None or newest.kind is not WorkType.SYNC:
                continue
            pod = self._agent.refused.get(uid, pod)
            if why := "; ".join(stale_objects(pod, self._agent.told.get(uid), newest, self._objects.stated)):
                behind[uid] = why
        return behind

    async def _misreport(self) -> None:
        """A status cannot be generated while a container of its pod ends: it is told soon after it can be again."""
        if (container := self._any_running()) is None:
            return
        uid = uid_of(container)
        self._faults.begin(Place.STATUS, uid, self._rng.choice(ERRORS))
        self._podman.exit(container.id, 1)
        await self._step(UNTOLD_S)
        self._faults.end(Place.STATUS, uid)
        await self._step(RETRIED_S)
        told = self._agent.told.get(uid)
        if told is not None and any(c.container_id.endswith(container.id) for c in _said_to_run(told)):
            self._trace.broke(f"{RETRIED_S:g} s after a status could be told again {container.name} is said to run")

    async def _answer_late(self) -> None:
        """A pod worker dies as it answers, and its answer comes when its successor works for the same pod."""
        if (container := self._any_running()) is None:
            return
        self._agent.answers_late = uid_of(container)
        self._podman.exit(container.id, 1)
        await self._step(LATE_S)
        self._agent.answers_late = ""

    async def _drain(self) -> None:
        """Every pod ends, within its grace period and what hooks may add; then each comes back."""
        self._agent.drain()
        end_at = self._now + DOWN_S
        while (not self._agent.is_down or self._left()) and self._now < end_at:
            await self._step(STEP_S)
        if (left := self._left()) or not self._agent.is_down:
            self._trace.broke(f"{DOWN_S:g} s after the node was drained there run {left}")
        self._agent.uncordon()
        await self._come_to_rest()

    async def _go_down(self, shutdown: SimShutdown) -> None:
        """The host goes down, whoever dies meanwhile: every pod ends. Then it stays up after all, or comes up again."""
        self.go_down()
        if shutdown.rng.random() < shutdowns.KILLED:
            await self._step(shutdown.rng.uniform(0.0, shutdowns.TAKES_S))
            self._kill_agent_alone() if shutdown.rng.random() < 0.6 else self.kill_worker()
        if shutdown.rng.random() < shutdowns.CALLED_OFF:
            await self._step(shutdown.rng.uniform(0.0, shutdowns.TAKES_S))
        else:
            await self._until(self._is_down, "every pod has ended with the host")
        if shutdown.rng.random() < shutdowns.REBOOTS:
            self.reboot()
        else:
            self.stay_up()
        await self._until(self._has_read_sources, "the agent knows what is wanted")
        await self._come_to_rest()

    def _is_down(self) -> bool:
        self.read_sources()
        return self._agent.is_down and not self._left()

    def _has_read_sources(self) -> bool:
        self.read_sources()
        return self._agent.sources_ready

    async def _preempt(self) -> None:
        """A critical pod comes while there is no place: one of the others gives it its own."""
        places = self._agent.active_pods()
        if places <= int(self._options.pressure):  # the one that never gives way
            return
        self._trace.note(f"a critical pod comes, and there are {places} places")
        self._agent.limit_pods(places)
        self._desired[preemption.UID] = preemption.critical_pod()
        self._agent.state(self._desired)
        if is_killed := self._rng.random() < KILLED:
            await self._step(self._rng.uniform(0.0, preemption.LASTS_S))
            self._agent.die("killed while it preempts")
            settings = msgspec.structs.replace(self._given.settings, max_pods=places)
            self._given = msgspec.structs.replace(self._given, settings=settings)
            self._restart_agent(lost=False)
        end_at = self._now + preemption.PREEMPTING_S
        while not self._has_preempted(is_killed) and self._now < end_at:
            await self._step(STEP_S)
            self.read_sources()
        gone = [uid for uid, sync in self._agent.newest.items() if preemption.is_preempted(sync)]
        may_be_poison = not gone and POISON in self._desired  # it goes in its own way
        if is_killed:  # then one may have been refused by the next agent instead
            gone = gone or [uid for uid in self._desired if self._is_out(uid)]
        if not preemption.runs(self._podman, preemption.UID) or not (len(gone) == 1 or may_be_poison):
            self._trace.broke(f"the critical pod does not run, or not one has given way: {gone}")
        self._agent.limit_pods(Settings().max_pods)

    def _has_preempted(self, is_killed: bool) -> bool:
        is_told = not is_killed or any(map(self._is_out, self._desired))
        return is_told and preemption.runs(self._podman, preemption.UID)

    def _is_out(self, uid: str) -> bool:
        """Whether it gave way, or there was no place for it."""
        told = self._agent.told.get(uid)
        return told is not None and told.status.reason in (PREEMPTED.reason, "OutOfpods")

    def _left(self) -> list[str]:
        """Containers that run, of pods that are wanted."""
        found = (container for uid in sorted(self._desired) if uid != POISON for container in self._podman.of_pod(uid))
        return [container.name for container in found if container.state == "running"]

    async def _lose_slice(self) -> None:
        """The slice of a pod vanishes under it: the pod is killed, and made again in one of its own."""
        container = self._any_running()
        if container is None or not container.cgroup_parent:
            return
        uid = uid_of(container)
        before = {c.id for c in self._podman.of_pod(uid) if c.state == "running"}
        self._trace.note(f"the slice of {uid[:8]} vanishes")
        del self._podman.slices[container.cgroup_parent]

        def is_killed() -> bool:
            return not before & {c.id for c in self._podman.of_pod(uid) if c.state == "running"}

        await self._until(is_killed, f"{uid[:8]} does not run outside of its slice", SETTLE_S)
        await self._come_to_rest()

    def _with_extras(self, pod: Pod) -> Pod:
        """The random pod with a claim or a priority, where there are such."""
        pod = self._claims.refer(pod) if self._claims is not None else pod
        return self._shutdown.ranked(pod) if self._shutdown is not None else pod

    def _any_running(self) -> FakeContainer | None:
        """A container of a pod that is wanted and has not ended."""
        uids = {uid for uid, sync in self._agent.newest.items() if sync.kind is WorkType.SYNC and uid != POISON}
        running = [
            container
            for uid in sorted(uids & self._desired.keys())
            for container in self._podman.of_pod(uid)
            if container.state == "running"
        ]
        return self._rng.choice(running) if running else None

    async def _take_down(self) -> None:
        self._trace.note("everything goes")
        self._desired.clear()
        self._agent.state({})
        end_at = self._now + DOWN_S
        while (self._existing() or self._agent.pods_supervised() or self._agent.told) and self._now < end_at:
            await self._step(STEP_S)
        if left := self._existing() or self._agent.told.keys():
            self._trace.broke(f"{DOWN_S:g} s after everything was taken down there are {sorted(left)}")
        if supervised := self._agent.pods_supervised():
            self._trace.broke(f"{supervised} pods are supervised, and none is there")
        if harmed := self._podman.harmed_strangers():
            self._trace.broke(f"strangers were not left alone: {harmed}")
        await self._collect_directories()
        await self._until(lambda: not self._pod_slices(), "the slices of all pods are stopped")
        self._check_rows()
        self._trace.check()

    def _pod_slices(self) -> list[str]:
        return [name for name in self._podman.slices if pod_slice_uid(name, PodCgroups())]

    def _check_rows(self) -> None:
        """As many pods as there are rows get one each."""
        self._agent.rows.clear()
        self._agent.state({uid: self._maker.make(uid) for uid in self._uids[: self._given.pod_rows]})
        if sorted(self._agent.rows.values()) != list(range(self._given.pod_rows)):
            self._trace.broke(f"a row is lost: {self._agent.rows}")

    async def _collect_directories(self) -> None:
        """The files are real, and so are their dates; the collector takes only those older than its list."""
        self._clock.wall_offset_s += 10 * WALL
        await self._step(70.0)
        left = sorted(path.name for name in ("pod-logs", "pods") for path in (self._directory / name).glob("*"))
        if left:
            self._trace.broke(f"directories are left: {left}")

    def _look(self) -> None:
        """Nothing is said to run for long that has ended."""
        is_blind = self._podman.is_down or self._podman.unreadable
        children = [self._agent.children[slot] for slot in SLOTS]
        if is_blind or any(child is None or child.hangs for child in children):
            self._agent.disturbed_at = self._now
        for uid, message in self._agent.told.items():
            for name, ran in self._watch.false_claims(message):
                age_s = self._now - max(ran.finished_at, self._agent.disturbed_at, self._faults.last_met(uid))
                if age_s > STALE_S:
                    self._trace.broke(f"{uid[:8]} {name} is said to run, and ended {age_s:.0f} s ago")

    def _existing(self) -> set[str]:
        return self._podman.uids()

    def _complaint(self, uid: str) -> str:
        """Each pod has to be well at some moment: those that crash again and again never are for long."""
        if uid == POISON and uid in self._desired:
            return ""
        if uid not in self._desired:
            return "it is there and not wanted" if uid in self._existing() else ""
        told, now_wall = self._agent.told.get(uid), self._clock.now().wall
        pod = self._agent.refused.get(uid, self._desired[uid])
        newest = self._agent.newest.get(uid)
        return "; ".join(
            (
                *complaints(pod, self._podman, told, now_wall, edited=uid in self._edited),
                *stale_objects(pod, told, newest, self._objects.stated),
            )
        )

    def _pull_fate(self, reference: str) -> ErrorKind | None:
        self._podman.pull_s = self._rng.choice(PULL_S)
        return self._rng.choice((None, None, ErrorKind.PULL, ErrorKind.TIMEOUT, ErrorKind.UNAVAILABLE))

    # --- what people do ---

    def change_manifest(self) -> None:
        uid, roll = self._rng.choice(self._uids), self._rng.random()
        if uid not in self._desired:
            self._desired[uid] = self._maker.make(uid)
            if uid in self._agent.stated:  # nobody has read that it was gone
                self._edited.add(uid)
        elif roll < 0.7:
            self._desired[uid] = self._maker.edit(self._desired[uid])
            self._edited.add(uid)
        else:
            del self._desired[uid]
        self.read_sources()

    def change_claim(self) -> None:
        if self._claims is not None:
            self._claims.change()
            self.read_sources()

    def restart_container(self) -> None:
        """Restart a container of any pod, in any state: perhaps it is refused."""
        if wanted := [pod for uid, pod in sorted(self._desired.items()) if uid != POISON]:
            pod = self._rng.choice(wanted)
            containers = (*pod.spec.containers, *pod.spec.init_containers)
            self._agent.restart_container(pod, self._rng.choice(containers).name)

    def change_object(self) -> None:
        self._objects.change()
        self.read_sources()

    def read_sources(self) -> None:
        """A source that cannot be read yet is read later."""
        if self._agent.alive and (self._agent.sources_ready or self._rng.random() < 0.3):
            self._agent.state(self._desired)

    def remove_by_hand(self) -> None:
        if uids := sorted(self._existing()):
            self._podman.remove_by_hand(self._rng.choice(uids))

    def end_a_process(self) -> None:
        strangers = self._podman.strangers
        running = [c for c in self._podman.containers.values() if c.state == "running" and c.id not in strangers]
        if running:
            self._podman.exit(self._rng.choice(running).id, self._rng.choice((0, 1, 42, 137)))

    def hide(self) -> None:
        """A container that is listed, and every inspect of which fails."""
        if containers := sorted(self._podman.containers):
            id = self._rng.choice(containers)
            self._trace.note(f"{self._podman.containers[id].name} cannot be inspected")
            self._podman.unreadable.add(id)
            self._later(self._rng.uniform(0.0, UNREADABLE_S), lambda: self._podman.unreadable.discard(id))

    def break_pod(self) -> None:
        """A bug of ours, which one pod meets."""
        uid, place = self._rng.choice(self._uids), self._rng.choice(tuple(Place))
        self._faults.begin(place, uid, self._rng.choice(ERRORS))
        self._later(self._rng.uniform(0.0, BROKEN_S), lambda: self._faults.end(place, uid))

    def pause(self) -> None:
        if wanted := [pod for uid, pod in sorted(self._desired.items()) if uid != POISON]:
            self._podman.can_freeze = self._rng.random() >= CANNOT_FREEZE
            self._agent.freeze(self._rng.choice(wanted), Freeze.PAUSE)

    def resume(self) -> None:
        if wanted := [pod for _, pod in sorted(self._desired.items())]:
            self._agent.freeze(self._rng.choice(wanted), Freeze.RESUME)

    def leave_orphan(self) -> None:
        """Something with our labels that no manifest has ever stated."""
        uid = f"{self._rng.randrange(2):08x}-orphan"
        if uid in self._existing() or self._podman.is_down:
            return
        pod = self._maker.make(uid)
        with contextlib.suppress(RuntimeCallError):
            id = self._podman.create_pod(pod_spec(pod, ownership(INSTANCE), 0, Path("/nonexistent")))
            self._podman.start_container(self._podman.pods[id].infra_id)

    def copy(self) -> None:
        """Somebody runs a container with the labels of one of ours, or with some that nobody can read."""
        if containers := [c for c in self._podman.containers.values() if not c.is_infra]:
            spoiled = {labels.ATTEMPT: "9" * 5000} if self._rng.random() < 0.5 else {}
            self._podman.copy_container(self._rng.choice(containers), **spoiled)

    def swell(self) -> None:
        """A pod takes more than is there."""
        taken, uid = self._rng.choice(tuple(Taken)), self._rng.choice(self._uids)
        if self._podman.of_pod(uid):
            self._trace.note(f"{uid[:8]} takes too much: {taken.value}")
            self._host.take(uid, taken, CAPACITY[self._host.signal_of(taken)])

    def squeeze(self) -> None:
        """Somebody who is no pod takes most of something, for a while."""
        signal = self._rng.choice(tuple(CAPACITY))
        self._trace.note(f"somebody takes most of {signal.value}")
        self._host.squeeze(signal, CAPACITY[signal] - int(self._rng.uniform(0.0, 2.0) * LEAST[signal]))
        self._later(self._rng.uniform(1.0, SQUEEZED_S), lambda: self._host.give_back(signal))

    def drain(self) -> None:
        self._agent.drain()

    def uncordon(self) -> None:
        self._agent.uncordon()

    def go_down(self) -> None:
        if self._shutdown is not None and self._shutdown.available_s is None:
            self._shutdown.begin()
            self._agent.hear_of_host()

    def stay_up(self) -> None:
        if self._shutdown is not None and self._shutdown.available_s is not None:
            self._trace.note("the host stays up")
            self._shutdown.available_s = None
            self._agent.hear_of_host()

    # --- what processes do ---

    def kill_worker(self) -> None:
        self._agent.kill(self._rng.choice(SLOTS))

    def kill_api_server(self) -> None:
        self._agent.api_down()

    def hang_worker(self) -> None:
        child = self._agent.children[self._rng.choice(SLOTS)]
        if child is None or child.hangs or not child.alive:
            return
        child.hang()
        seconds = self._rng.uniform(0.5, 2 * HUNG_S)
        if seconds > HUNG_S:
            self._later(HUNG_S, lambda: child.die("no heartbeat"))
        else:
            self._later(seconds, child.go_on)

    def kill_podman(self) -> None:
        self._podman.die("killed")

    def kill_agent(self) -> None:
        """And start it again: it knows the checkpoint, and reads its sources when it can."""
        self._agent.die("killed")
        self._restart_agent()

    def reboot(self) -> None:
        self._trace.note("the host reboots")
        self._agent.die("reboot")
        self._podman.reboot()
        if self._shutdown is not None:
            self._shutdown.reboot()
        self._restart_agent()

    def _restart_agent(self, *, lost: bool | None = None) -> None:
        """A checkpoint may be lost: then what runs is only known by its labels."""
        if lost is None:
            lost = self._rng.random() < CHECKPOINT_LOST
        before = self._agent
        restored, verdicts, resources = (
            ({}, None, None) if lost else (before.accepted(), before.kept_verdicts(), before.kept_resources())
        )
        self._agent = Agent(
            self._given,
            restored,
            verdicts,
            resources,
            bindings=before.kept_bindings(),
            restarts=before.kept_restarts(),
        )
        self._agent.start()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, act, context=NOBODY)


def _said_to_run(told: PodChanged) -> list[ContainerStatus]:
    return [status for status in every_status(told) if status.state.running is not None]


class _World:
    """Part of a simulation that a scenario of its own module sees."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.until = simulation._until
        self.replace = simulation._replace
        self.step = simulation._step
        self.kill_agent_alone = simulation._kill_agent_alone
        self.state = simulation.read_sources

    @property
    def agent(self) -> Agent:
        return self._simulation._agent


NOISE: Final[dict[Callable[[Simulation], None], float]] = {
    Simulation.change_manifest: 20,
    Simulation.change_object: 10,
    Simulation.read_sources: 10,
    Simulation.end_a_process: 10,
    Simulation.remove_by_hand: 1,
    Simulation.leave_orphan: 0.5,
    Simulation.hide: 0.5,
    Simulation.copy: 0.5,
    Simulation.break_pod: 2,
    Simulation.swell: 1,
    Simulation.squeeze: 0.5,
    Simulation.drain: 0.5,
    Simulation.uncordon: 1,
    Simulation.go_down: 0.5,
    Simulation.stay_up: 1,
    Simulation.restart_container: 3,
    Simulation.change_claim: 6,
    Simulation.pause: 4,
    Simulation.resume: 4,
    Simulation.kill_worker: 4,
    Simulation.kill_api_server: 1,
    Simulation.hang_worker: 2,
    Simulation.kill_podman: 1,
    Simulation.kill_agent: 1,
    Simulation.reboot: 0.3,
}
"""Events that happen, and how often relative to one another."""

__all__ = ["ABSENT", "Options", "Outcome", "simulate_seed"]
