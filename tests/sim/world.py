"""The host and the agent of a simulation: what both are made of, and the means to disturb them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.pod_failure import EVICTED
from ipc.k8s.podresources.node_resources import NodeResources
from ipc.link.messages.pod_worker import WorkType
from supervisor.config.settings import CrashLoopBackOffSettings, Seconds, Settings, WorkersSettings
from tests.fakes.clock import SimClock
from tests.fakes.podman import FakeContainer
from tests.sim import pressure
from tests.sim.agent import POD_SLOTS, SLOTS, Agent
from tests.sim.claims import SimClaims
from tests.sim.faults import Faults
from tests.sim.frame import Frame
from tests.sim.given import Given
from tests.sim.host import SimHost
from tests.sim.loop import NOBODY
from tests.sim.objects import SimObjects, stale_objects
from tests.sim.options import Options
from tests.sim.oracle import MAX_BACKOFF_S, complaints
from tests.sim.pods import PRESENT, PROGRAMS, PULLED, PodMaker
from tests.sim.poison import UID as POISON
from tests.sim.poison import Poison
from tests.sim.probes import SimProbes
from tests.sim.resizes import NODE, Sizes
from tests.sim.runtime import SimPodman
from tests.sim.shutdowns import SimShutdown, with_shutdown_grace
from tests.sim.trace import Trace
from tests.sim.watch import Watch
from tests.sim.worker_settings import worker_settings

PODS_PER_WORKER: Final = 2
"""So that the second pod worker comes and goes."""
WALL: Final = 1_500_000_000.0
"""Before any real file was made: what the collector of directories compares with file dates never is older than those
until the clock jumps (`simulation._collect_directories`)."""
STALE_S: Final = 45.0
"""How long something may be said to run that has ended, while nobody disturbs the agent's eyes."""
CHECKPOINT_LOST: Final = 0.3


class World(Frame):
    """One host with its agent, and what is wanted of it; scenarios and noise use its parts directly."""

    def __init__(self, seed: int, options: Options, trace: Trace, directory: Path, scratch: Path) -> None:
        """``scratch``: a directory below /tmp."""
        self.rng = random.Random(seed)
        self.options = options
        clock = SimClock()
        clock.wall_offset_s = WALL
        super().__init__(trace, clock)
        self.directory = directory
        probing = random.Random(seed) if options.probes else None
        self.objects = SimObjects(random.Random(seed + 2))
        self.claims: SimClaims | None = None
        self.maker = PodMaker(
            random.Random(self.rng.random()),
            probing,
            self.objects if options.objects else None,
            Sizes(random.Random(seed + 4)) if options.resizes else None,
            self.with_extras,
        )
        self.uids = [f"{number:08x}-sim" for number in options.numbers or range(1, options.pods + 1)]
        self.desired: dict[str, Pod] = {}
        self.edited: set[str] = set()
        self.faults = Faults(trace, self.clock)
        self.watch = Watch(trace, self.clock, lambda uid: self.agent.in_flight.get(uid))
        self.podman = SimPodman(
            self.clock,
            self.rng,
            self.watch,
            images=[PRESENT],
            registry=[*PULLED, pressure.LARGE_IMAGE],
            major=4 + seed % 2,
        )
        if options.claims:
            self.claims = SimClaims(random.Random(seed + 6), trace, self.podman, scratch)
        self.watch.excused = self.faults.excuses
        self.podman.commands.update(PROGRAMS)
        self.watch.podman = self.podman
        self.probes = SimProbes(self.podman, random.Random(seed + 1), self.watch.probes)
        self.poison = Poison(random.Random(seed + 3), trace, self.podman) if options.poison else None
        if self.poison is not None:
            self.desired[POISON] = self.poison.pod()
        self.host = SimHost(random.Random(seed + 5), self.podman, self.clock)
        self.marks = pressure.Marks(trace)
        self.watch.acted = self.marks.acted
        if options.pressure:
            self.desired[pressure.CRITICAL] = pressure.critical_pod()
        settings = Settings(
            workers=WorkersSettings(count=len(POD_SLOTS), pods_per_worker=PODS_PER_WORKER),
            crash_loop_back_off=CrashLoopBackOffSettings(max_container_restart_period_s=Seconds(MAX_BACKOFF_S)),
        )
        settings = pressure.with_thresholds(settings) if options.pressure else settings
        self.shutdown: SimShutdown | None = None
        if options.shutdown:
            settings = with_shutdown_grace(settings, directory)
            rng = random.Random(seed + 7)
            self.shutdown = SimShutdown(rng, trace, self.podman, self.watch, self.clock, directory)
        self.given = Given(
            rng=self.rng,
            trace=trace,
            watch=self.watch,
            podman=self.podman,
            probes=self.probes,
            poison=self.poison,
            claims=self.claims,
            shutdown=self.shutdown,
            objects=self.objects,
            host=self.host,
            marks=self.marks,
            clock=self.clock,
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
        self.agent = Agent(self.given, {})

    # --- whether all is well ---

    def with_extras(self, pod: Pod) -> Pod:
        """The random pod with a claim or a priority, where there are such."""
        pod = self.claims.refer(pod) if self.claims is not None else pod
        return self.shutdown.ranked(pod) if self.shutdown is not None else pod

    def look(self) -> None:
        """Nothing is said to run for long that has ended."""
        is_blind = self.podman.is_down or self.podman.unreadable
        children = [self.agent.children[slot] for slot in SLOTS]
        if is_blind or any(child is None or child.hangs for child in children):
            self.agent.disturbed_at = self.now
        for uid, message in self.agent.told.items():
            for name, ran in self.watch.false_claims(message):
                age_s = self.now - max(ran.finished_at, self.agent.disturbed_at, self.faults.last_met(uid))
                if age_s > STALE_S:
                    self.trace.broke(f"{uid[:8]} {name} is said to run, and ended {age_s:.0f} s ago")

    def unsettled(self, before: Mapping[str, str] | None) -> Mapping[str, str]:
        """Every pod is as it is wanted, at some moment."""
        if before is None:
            return dict.fromkeys((*self.desired, *sorted(self.existing())), "not looked at")
        return {uid: why for uid in before if (why := self.complaint(uid))}

    def complaint(self, uid: str) -> str:
        """Each pod has to be well at some moment: those that crash again and again never are for long."""
        if uid == POISON and uid in self.desired:
            return ""
        if uid not in self.desired:
            return "it is there and not wanted" if uid in self.existing() else ""
        told, now_wall = self.agent.told.get(uid), self.clock.now().wall
        pod = self.agent.refused.get(uid, self.desired[uid])
        newest = self.agent.newest.get(uid)
        return "; ".join(
            (
                *complaints(pod, self.podman, told, now_wall, edited=uid in self.edited),
                *stale_objects(pod, told, newest, self.objects.stated),
            )
        )

    def existing(self) -> set[str]:
        return self.podman.uids()

    def is_evicted(self, uid: str) -> bool:
        told = self.agent.told.get(uid)
        return told is not None and told.status.phase == "Failed" and told.status.reason == EVICTED

    def runs(self, uid: str) -> bool:
        return any(container.state == "running" for container in self.podman.of_pod(uid))

    def left(self) -> list[str]:
        """Containers that run, of pods that are wanted."""
        found = (container for uid in sorted(self.desired) if uid != POISON for container in self.podman.of_pod(uid))
        return [container.name for container in found if container.state == "running"]

    def any_running(self) -> FakeContainer | None:
        """A container of a pod that is wanted and has not ended."""
        uids = {uid for uid, sync in self.agent.newest.items() if sync.kind is WorkType.SYNC and uid != POISON}
        running = [
            container
            for uid in sorted(uids & self.desired.keys())
            for container in self.podman.of_pod(uid)
            if container.state == "running"
        ]
        return self.rng.choice(running) if running else None

    # --- what people do ---

    def read_sources(self) -> None:
        """A source that cannot be read yet is read later."""
        if self.agent.alive and (self.agent.sources_ready or self.rng.random() < 0.3):
            self.agent.state(self.desired)

    async def replace(self, gone: Iterable[str], come: Mapping[str, Pod]) -> None:
        """Replace pods: these go, and nothing is left of them; then those come."""
        for uid in gone:
            del self.desired[uid]
        self.agent.state(self.desired)
        await self.until(lambda: not (self.existing() | self.agent.told.keys()) & set(gone), f"{gone} are gone")
        self.desired |= come
        self.agent.state(self.desired)

    def drain(self) -> None:
        self.agent.drain()

    def uncordon(self) -> None:
        self.agent.uncordon()

    def go_down(self) -> None:
        if self.shutdown is not None and self.shutdown.available_s is None:
            self.shutdown.begin()
            self.agent.hear_of_host()

    def stay_up(self) -> None:
        if self.shutdown is not None and self.shutdown.available_s is not None:
            self.trace.note("the host stays up")
            self.shutdown.available_s = None
            self.agent.hear_of_host()

    # --- what processes do ---

    def kill_worker(self) -> None:
        self.agent.kill(self.rng.choice(SLOTS))

    def kill_agent_alone(self) -> None:
        self.agent.die("killed")
        self.restart_agent(lost=False)

    def kill_agent(self) -> None:
        """And start it again: it knows the checkpoint, and reads its sources when it can."""
        self.agent.die("killed")
        self.restart_agent()

    def reboot(self) -> None:
        self.trace.note("the host reboots")
        self.agent.die("reboot")
        self.podman.reboot()
        if self.shutdown is not None:
            self.shutdown.reboot()
        self.restart_agent()

    def restart_agent(self, *, lost: bool | None = None) -> None:
        """A checkpoint may be lost: then what runs is only known by its labels."""
        if lost is None:
            lost = self.rng.random() < CHECKPOINT_LOST
        before = self.agent
        restored, verdicts = ({}, None) if lost else (before.accepted(), before.kept_verdicts())
        files = msgspec.structs.replace(before.files, resources={}) if lost else before.files
        self.agent = Agent(self.given, restored, verdicts, files)
        self.agent.start()

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, act, context=NOBODY)
