"""A day of a busy node: pods come and go, crash, pull images and write logs, and in the end everything is as it was.

    python -m tests.sim.day --pods 1000 --hours 24

The real sync loop and workers on simulated time, without faults. The day has rounds; after each of them all pods go, a
few quiet hours pass, and what is left is counted: objects that the master and its workers hold, files, descriptors,
events, records. The last round has to leave no more than the first.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import random
import shutil
import sys
import tempfile
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.v1.container import Container
from ipc.k8s.api.v1.pod import Pod, PodSpec
from ipc.k8s.podobjects.registry_login import RegistryLogin
from supervisor.config.settings import Seconds, Settings
from tests.fakes.clock import SimClock
from tests.fakes.podman import FakeContainer, Program
from tests.sim.agent import SLOTS, Agent
from tests.sim.given import Given
from tests.sim.host import MIB, SimHost
from tests.sim.loop import run_alone
from tests.sim.objects import SimObjects
from tests.sim.pods import PRESENT, PROGRAMS, PULLED, PodMaker
from tests.sim.pressure import Marks, with_thresholds
from tests.sim.probes import SimProbes
from tests.sim.runtime import SimPodman
from tests.sim.trace import Trace, Violation
from tests.sim.watch import Watch
from tests.sim.worker_settings import worker_settings

WALL: Final = 2e9
"""After any real file was made: the collector of directories takes what is older than its list."""
HOUR_S: Final = 3600.0
QUIET_S: Final = 3 * HOUR_S
"""After each round: events expire after one hour, unused images after one, records with them."""
IMAGES: Final = tuple(f"registry.test/day-{number}:1" for number in range(40))
IMAGE_BYTES: Final = 200 * MIB
LOG_LINE: Final = b"2033-05-18T03:33:20.000000000+00:00 stdout F " + b"x" * 212 + b"\n"
LINES_A_MINUTE: Final = 4
TOLERANCE: Final[Mapping[str, float]] = {"objects": 1.05, "kib": 1.25, "disk_bytes": 1.1}
"""The last round relative to the first: dictionaries keep room that they once needed. All else is exact."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    pods: int = 1000
    hours: float = 24.0
    rounds: int = 4
    at_once: int = 40
    seed: int = 1


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Remains that there are when no pod is."""

    objects: int
    """Held by the master's loop and by the workers."""
    kib: int
    files: int
    """Below the directories of pods, logs and records."""
    disk_bytes: int
    descriptors: int
    events: int
    images: int
    containers: int
    """With pods and volumes of Podman's."""
    resources: int
    """Pods of which allocations are kept."""

    def beyond(self, first: Left) -> Iterator[str]:
        """Figures that have grown since the first round."""
        for name in self.__struct_fields__:
            if getattr(self, name) > getattr(first, name) * TOLERANCE.get(name, 1.0):
                yield f"{name} grew from {getattr(first, name)} to {getattr(self, name)}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One round: what happened, and what is left."""

    pods: int
    restarts: int
    pulls: int
    log_bytes: int
    left: Left


class Day:
    """The node, and who makes and removes its pods."""

    def __init__(self, options: Options, directory: Path) -> None:
        self._options = options
        self._directory = directory
        self._rng = rng = random.Random(options.seed)
        self._clock = SimClock()
        self._clock.wall_offset_s = WALL
        self._trace = trace = Trace()
        watch = Watch(trace, self._clock, lambda uid: self._agent.in_flight.get(uid))
        self._podman = _Podman(self._clock, rng, watch, images=[PRESENT], registry=[*PULLED, *IMAGES])
        self._podman.commands.update(PROGRAMS)
        self._podman.image_bytes = dict.fromkeys((*PULLED, *IMAGES), IMAGE_BYTES)
        self._podman.capacity, self._podman.other_bytes, self._podman.pull_s = 10_000 * MIB, 0, 3.0
        watch.podman = self._podman
        objects = SimObjects(random.Random(options.seed + 1))
        self._maker = PodMaker(rng, rng, objects)
        self._host = SimHost(rng, self._podman, self._clock)
        self._host.is_quiet = True
        self._desired: dict[str, Pod] = {}
        self._made = 0
        settings = with_thresholds(Settings(image_maximum_gc_age_s=Seconds(HOUR_S)))
        self._agent = Agent(
            Given(
                rng=rng,
                trace=trace,
                watch=watch,
                podman=self._podman,
                probes=SimProbes(self._podman, rng, watch.probes),
                poison=None,
                objects=objects,
                host=self._host,
                marks=Marks(trace),
                clock=self._clock,
                settings=settings,
                worker_settings=msgspec.structs.replace(
                    worker_settings(directory),
                    thresholds=settings.thresholds,
                ),
                pod_rows=options.at_once * 2,
            ),
            {},
        )

    async def run(self) -> list[Row]:
        """Raises Violation."""
        rows = []
        with self._host.installed():
            self._agent.start()
            self._state()
            for _ in range(self._options.rounds):
                rows.append(await self._round())
            self._agent.die("the end")
        return rows

    async def _round(self) -> Row:
        pods = self._options.pods // self._options.rounds
        pause_s = self._options.hours * HOUR_S / self._options.pods
        podman = self._podman
        started, pulled, written = podman.starts, podman.pulls, podman.written
        for _ in range(pods):
            self._come_and_go()
            await self._pass(pause_s)
        self._desired.clear()
        self._state()
        await self._pass(QUIET_S)
        return Row(
            pods=pods,
            restarts=podman.starts - started - pods,
            pulls=podman.pulls - pulled,
            log_bytes=podman.written - written,
            left=self._left(),
        )

    def _come_and_go(self) -> None:
        """One more pod; the oldest goes when there are too many."""
        self._made += 1
        uid = f"{self._made:08x}-day"
        pod = self._maker.make(uid)
        self._desired[uid] = msgspec.structs.replace(pod, spec=self._with_images(pod))
        if len(self._desired) > self._options.at_once:
            del self._desired[next(iter(self._desired))]
        self._state()

    def _with_images(self, pod: Pod) -> PodSpec:
        containers = tuple(self._with_image(container) for container in pod.spec.containers)
        return msgspec.structs.replace(pod.spec, containers=containers)

    def _with_image(self, container: Container) -> Container:
        """Half of them have one of the many images."""
        image = self._rng.choice(IMAGES) if self._rng.random() < 0.5 else container.image
        return msgspec.structs.replace(container, image=image)

    def _state(self) -> None:
        self._agent.state(self._desired)

    async def _pass(self, seconds: float) -> None:
        """Time passes, and whoever runs writes to its log."""
        while seconds > 0.0:
            await asyncio.sleep(min(seconds, 60.0))
            self._podman.write_logs(LOG_LINE * LINES_A_MINUTE)
            self._trace.check()
            seconds -= 60.0

    # --- what is left ---

    def _left(self) -> Left:
        agent, podman = self._agent, self._podman
        tasks = (task for slot in SLOTS if (child := agent.children[slot]) is not None for task in child.tasks)
        held = list(_held([agent._loop, *tasks]))
        files = [path for path in self._directory.rglob("*") if path.is_file()]
        return Left(
            objects=len(held),
            kib=sum(map(sys.getsizeof, held)) >> 10,
            files=len(files),
            disk_bytes=sum(path.stat().st_size for path in files),
            descriptors=len(os.listdir("/proc/self/fd")),
            events=sum(1 for _ in agent._loop.durable.events.events()),
            images=len(podman.images),
            containers=len(podman.containers) + len(podman.pods) + len(podman.volumes),
            resources=len(agent._loop.durable.allocations.all_resources()),
        )


class _Podman(SimPodman):
    """A Podman that counts, and whose containers write."""

    starts = pulls = written = 0

    def _run(self, container: FakeContainer, program: Program) -> None:
        self.starts += 1
        super()._run(container, program)

    def pull_image(self, reference: str, login: RegistryLogin | None = None) -> str:
        self.pulls += 1
        return super().pull_image(reference, login)

    def write_logs(self, text: bytes) -> None:
        """Every container that runs writes that."""
        for id, path in self._logs.items():
            if self.containers[id].state == "running" and path.parent.is_dir():
                with path.open("ab") as log:
                    self.written += log.write(text)


_LEFT_OUT: Final = (types.ModuleType, types.FunctionType, type, types.FrameType)


def _held(roots: Iterable[object]) -> Iterator[object]:
    """Objects that can be reached from there, but for the simulation's own."""
    gc.collect()
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, _LEFT_OUT) or type(found).__module__.startswith("tests."):
            continue
        seen.add(id(found))
        yield found
        waiting.extend(gc.get_referents(found))


def a_day(options: Options) -> list[Row]:
    """Raises Violation for a promise that was broken meanwhile."""
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="rootlet-day-", dir=memory if memory.is_dir() else None))

    async def main() -> list[Row]:
        return await Day(options, directory).run()

    try:
        return run_alone(main)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.day", description=__doc__)
    known = Options()
    for name in known.__struct_fields__:
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=type(getattr(known, name)), default=getattr(known, name)
        )
    options = Options(**vars(parser.parse_args()))
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        rows = a_day(options)
    except Violation as violation:
        print(f"broken: {violation}")
        return 1
    names = ("pods", "restarts", "pulls", "log_bytes", *Left.__struct_fields__)
    print("".join(f"{name:>12}" for name in names))
    for row in rows:
        print("".join(f"{getattr(row, name, getattr(row.left, name, 0)):>12}" for name in names))
    grown = list(rows[-1].left.beyond(rows[0].left))
    print(*grown or ["nothing has grown"], sep="\n")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
