"""Podman in the simulation: slow, failing, dying in the middle of a call, and watched at every effect."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from ipc.host.clock import Clock
from ipc.k8s.podobjects.registry_login import RegistryLogin
from ipc.k8s.podresources.cgroup_config import CgroupConfig
from ipc.link.messages.pod_worker import SyncPod
from tests.fakes.podman import KILLED, RUNNING, FakeContainer, FakePodman, Program
from tests.fakes.runtime import FakeRuntime, Flavour
from tests.sim.loop import NOBODY
from workers.kubecontainer import labels
from workers.kubecontainer.image_service import ImageInfo, ImageStamp
from workers.kubecontainer.runtime import (
    ContainerProcess,
    ErrorKind,
    InspectedContainer,
    RuntimeCallError,
    RuntimeEvent,
    SpecDict,
)

T = TypeVar("T")

INSTANCE: Final = "sim"
FULL_DISK_BYTES: Final = 1000
"""Bytes of a disk with the images that something else has filled: images that nobody uses are removed."""
BIND_ERRORS: Final = (ErrorKind.INTERNAL, ErrorKind.INTERNAL, ErrorKind.WRONG_STATE)
"""Error of a call that has no effect: 500 mostly, 409 now and then."""


class Odds(msgspec.Struct, frozen=True, kw_only=True):
    """How likely each misfortune is, per call or per event."""

    fails: float = 0.0
    times_out: float = 0.0
    times_out_with_effect: float = 0.0
    takes_effect_late: float = 0.0
    """A timeout, and some time later it happens."""
    kills_podman: float = 0.0
    """Podman dies over it, and half of it has happened."""
    kills_caller: float = 0.0
    """Before the effect or after it."""
    is_slow: float = 0.0
    event_lost: float = 0.0
    event_late: float = 0.0
    event_repeated: float = 0.0
    no_pidfd: float = 0.0
    no_look: float = 0.0
    """A container that was started has to be inspected."""


QUIET: Final = Odds()
NOISY: Final = Odds(
    fails=0.02,
    times_out=0.01,
    times_out_with_effect=0.008,
    takes_effect_late=0.008,
    kills_podman=0.002,
    kills_caller=0.006,
    is_slow=0.03,
    event_lost=0.2,
    event_late=0.2,
    event_repeated=0.1,
    no_pidfd=0.1,
    no_look=0.2,
)
LATENCY_S: Final = 0.02
SLOW_S: Final = 4.0
EVENT_DELAY_S: Final = 0.15
LATE_EVENT_S: Final = 20.0
LATE_EFFECT_S: Final = 5.0
MAX_DOWN_S: Final = 8.0
"""Longest time until somebody has started Podman again."""


class Caller(Protocol):
    """The one that makes a call."""

    name: str

    @property
    def request(self) -> SyncPod | None:
        """On behalf of which sync, if any."""

    async def turn(self) -> None:
        """Wait while it hangs. Raises CancelledError when it is dead."""

    def die(self, why: str) -> None:
        """Kill -9, now."""


class Watcher(Protocol):
    """Told of every effect, in the moment of it."""

    def note(self, line: str) -> None: ...
    def touched(self, caller: Caller | None, uid: str, what: str) -> None: ...
    def made(self, caller: Caller | None, container: FakeContainer) -> None: ...
    def started(self, caller: Caller | None, container: FakeContainer) -> None: ...
    def signalled(self, caller: Caller | None, container: FakeContainer, signal: str) -> None: ...
    def ended(self, container: FakeContainer) -> None: ...
    def cleared(self, caller: Caller | None, uid: str) -> None: ...
    def taken_away(self, containers: Iterable[FakeContainer]) -> None: ...
    def began(self, caller: Caller, verb: str) -> None: ...
    def made_sandbox(self, caller: Caller | None, id: str) -> None: ...


class SimPodman(FakePodman):
    """The truth of the simulation."""

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        watcher: Watcher,
        *,
        images: Iterable[str],
        registry: Iterable[str],
        major: int = 5,
    ) -> None:
        super().__init__(clock, images=images, registry=registry, major=major)
        self.other_bytes = self.capacity = FULL_DISK_BYTES
        self.rng = rng
        self.odds = QUIET
        self.caller: Caller | None = None
        """Caller whose call takes effect in this moment."""
        self.given_up_at: float | None = None
        """When somebody has given up waiting for the call that takes effect in this moment, monotonic seconds."""
        self.is_down = False
        self.pod_table = 1
        """How often the service was started."""
        self.pull_fate: Callable[[str], ErrorKind | None] = lambda reference: None
        self.watcher = watcher
        self.strangers: set[str] = set()
        """Ids of containers with our labels that the agent has not made."""
        self._logs: dict[str, Path] = {}

    def of_pod(self, uid: str) -> list[FakeContainer]:
        """Containers of the pod, without infra containers; newest first."""
        found = [c for c in self._made_by_agent() if not c.is_infra and uid_of(c) == uid]
        return found[::-1]

    def uids(self) -> set[str]:
        """Pods of which something is there."""
        found = [pod.labels for pod in self.pods.values()] + [c.labels for c in self._made_by_agent()]
        return {own[labels.POD_UID] for own in found}

    def _made_by_agent(self) -> list[FakeContainer]:
        return [c for c in self.containers.values() if c.id not in self.strangers]

    def copy_container(self, of: FakeContainer, **changed: str) -> None:
        """`podman run` with the labels of one of ours, outside of every pod. It runs for ever."""
        made = self._add(None, f"stranger-{len(self.strangers)}", of.image, {**of.labels, **changed}, Program())
        self.strangers.add(made.id)
        FakePodman._run(self, made, Program())
        self.watcher.note(f"{made.name} has the labels of {of.name}")

    def harmed_strangers(self) -> list[str]:
        """Strangers that are gone, or that somebody has signalled or ended."""
        there = {id: self.containers[id] for id in self.strangers & self.containers.keys()}
        gone = sorted(self.strangers - there.keys())
        return gone + [c.name for c in there.values() if c.signals or c.state != "running"]

    def die(self, why: str) -> None:
        """The service is gone: every call in flight fails, every stream ends. Containers stay."""
        if self.is_down:
            return
        self.watcher.note(f"podman dies: {why}")
        self.is_down = True
        self.break_events()
        seconds = self.rng.uniform(0.2, MAX_DOWN_S)
        asyncio.get_running_loop().call_later(seconds, self.revive, context=NOBODY)

    def reboot(self) -> None:
        """Every process is gone, and nobody has seen it."""
        for container in tuple(self.containers.values()):
            if container.state in RUNNING and container.id not in self.strangers:
                state, finished_at = container.state, container.finished_at
                self.exit(container.id, KILLED)
                container.state, container.exit_code = state, 0
                container.finished_at, container.has_end = finished_at, False
                self.reset(container)
        self.lost.clear()

    def remove_by_hand(self, uid: str) -> None:
        """Somebody removes a pod, or one of its containers."""
        self.watcher.note(f"somebody removes something of {uid[:8]}")
        containers = self.of_pod(uid)
        if containers and self.rng.random() < 0.5:
            gone = [self.rng.choice(containers)]
            self.remove_container(gone[0].id)
        else:
            gone = containers
            for pod in [pod for pod in self.pods.values() if pod.labels[labels.POD_UID] == uid]:
                self.remove_pod(pod.id)
        self.watcher.taken_away(gone)

    def revive(self) -> None:
        if self.is_down:
            self.watcher.note("podman is back")
            self.is_down = False
            self.pod_table += 1

    def still_serves(self, lifecycle: int) -> bool:
        """The service that a call was sent to is there."""
        return not self.is_down and self.pod_table == lifecycle

    def happen_late(self, effect: Callable[[], object], given_up_at: float) -> None:
        """Carry out what nobody waits for any more; it may be refused as any call."""
        self.given_up_at = given_up_at
        try:
            with contextlib.suppress(RuntimeCallError):
                effect()
        finally:
            self.given_up_at = None

    # --- watched verbs ---

    def create_pod(self, spec: SpecDict) -> str:
        self.watcher.touched(self.caller, spec["labels"][labels.POD_UID], f"create sandbox {spec['name']}")
        id = super().create_pod(spec)
        self.watcher.made_sandbox(self.caller, id)
        return id

    def create_container(self, spec: SpecDict) -> str:
        self.watcher.touched(self.caller, spec["labels"][labels.POD_UID], f"create {spec['name']}")
        id = super().create_container(spec)
        self._logs[id] = Path(spec["log_configuration"]["path"])
        self.watcher.made(self.caller, self.containers[id])
        return id

    def start_container(self, id: str) -> None:
        container = self.container(id)
        self.watcher.touched(self.caller, uid_of(container), f"start {container.name}")
        super().start_container(id)

    def kill_container(self, id: str, name: str) -> None:
        container = self.containers.get(id)
        if container is not None:
            self.watcher.touched(self.caller, uid_of(container), f"{name} to {container.name}")
            self.watcher.signalled(self.caller, container, name)
        super().kill_container(id, name)

    def remove_container(self, id: str) -> None:
        container = next((c for c in self.containers.values() if id in (c.id, c.name)), None)
        if container is not None:
            self.watcher.touched(self.caller, uid_of(container), f"remove {container.name}")
        super().remove_container(id)

    def remove_pod(self, id: str) -> None:
        if id not in self.pods:
            return
        uid, name = self.pods[id].labels[labels.POD_UID], self.pods[id].name
        self.watcher.touched(self.caller, uid, f"remove sandbox {name}")
        super().remove_pod(id)
        self.watcher.cleared(self.caller, uid)

    def start_slice(self, name: str, config: CgroupConfig) -> None:
        super().start_slice(name, config)
        self.watcher.note(f"{name} is there")

    def stop_slice(self, name: str) -> None:
        super().stop_slice(name)
        self.watcher.note(f"{name} is stopped")

    # --- what becomes of processes ---

    def exit(self, id: str, exit_code: int = 0, *, oom_killed: bool = False) -> None:
        container = self.container(id)
        if container.state not in RUNNING:
            return
        super().exit(id, exit_code, oom_killed=oom_killed)
        self.watcher.note(f"ended {container.name} with {exit_code}")
        self.watcher.ended(container)

    def _run(self, container: FakeContainer, program: Program) -> None:
        super()._run(container, program)
        if container.id in self._logs:
            self._logs[container.id].touch()
        self.watcher.started(self.caller, container)

    def _remove(self, container: FakeContainer) -> None:
        super()._remove(container)
        self._logs.pop(container.id, None)

    # --- what is noticed of them ---

    def _tell(self, action: str, container: FakeContainer) -> None:
        odds, loop = self.odds, asyncio.get_running_loop()
        event = RuntimeEvent(
            action=action, container_id=container.id, labels=dict(container.labels), time=self.clock.now().wall
        )
        if self.rng.random() < odds.event_lost:
            return
        for _ in range(2 if self.rng.random() < odds.event_repeated else 1):
            late = self.rng.random() < odds.event_late
            delay_s = self.rng.uniform(0.0, LATE_EVENT_S if late else EVENT_DELAY_S)
            loop.call_later(delay_s, self._hand_out, event, context=NOBODY)

    def _hand_out(self, event: RuntimeEvent) -> None:
        for listener in self.listeners:
            listener.put_nowait(event)

    def open_process(self, container: InspectedContainer) -> int | None:
        if self.rng.random() < self.odds.no_pidfd:
            raise OSError("no file descriptors left")
        return super().open_process(container)


class SimRuntime(FakeRuntime):
    """One child's client. A call takes time before its effect and after it; anything may happen in between."""

    podman: SimPodman

    def __init__(self, podman: SimPodman, caller: Caller) -> None:
        super().__init__(podman, INSTANCE)
        self._caller = caller

    async def pull_image(
        self, reference: str, on_progress: Callable[[str], None], login: RegistryLogin | None = None
    ) -> str:
        fate = self.podman.pull_fate(reference)
        if fate is not None:
            on_progress(f"Trying to pull {reference}...")
            await asyncio.sleep(self.podman.rng.uniform(0.1, 10.0))
            raise RuntimeCallError(fate, "pull_image", "an injected failure of the registry")
        return await super().pull_image(reference, on_progress, login)

    def image_stamp(self, having: str = "") -> ImageStamp | None:
        return frozenset((name, image.id) for name, image in self.podman.images.items())

    def look_at_container(self, id: str, spec: SpecDict, image: ImageInfo) -> InspectedContainer | None:
        podman = self.podman
        return None if podman.rng.random() < podman.odds.no_look else super().look_at_container(id, spec, image)

    def signal_process(self, process: ContainerProcess, signal: str) -> bool:
        """Now and then it is not permitted."""
        podman = self.podman
        if podman.rng.random() < podman.odds.no_pidfd:
            return False
        podman.caller = self._caller
        try:
            return super().signal_process(process, signal)
        finally:
            podman.caller = None

    async def _call(self, verb: str, effect: Callable[[], T], cut_short: Callable[[], object] | None = None) -> T:
        podman = self.podman
        rng, odds, lifecycle = podman.rng, podman.odds, podman.pod_table
        self._count(calls=1)
        podman.watcher.began(self._caller, verb)
        await self._caller.turn()
        await asyncio.sleep(self._latency_s_now())
        await self._caller.turn()
        if rng.random() < odds.kills_caller:
            self._caller.die(f"before {verb}")
            await self._caller.turn()
        if not podman.still_serves(lifecycle):
            self._count(errors=1)
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, verb, "nobody answers")
        try:
            result = self._take_effect(verb, effect, cut_short or effect)
        except RuntimeCallError as error:
            await self._answer_travels(verb)
            self._count(errors=int(error.kind is not ErrorKind.NOT_FOUND))
            raise
        await self._answer_travels(verb)
        if not podman.still_serves(lifecycle):
            self._count(errors=1)
            raise RuntimeCallError(ErrorKind.UNAVAILABLE, verb, "it went away before it answered")
        return result

    def _take_effect(self, verb: str, effect: Callable[[], T], cut_short: Callable[[], object]) -> T:
        podman = self.podman
        flavour = _draw(podman.rng, podman.odds)
        if flavour is not None and verb != "events":
            podman.watcher.note(f"{self._caller.name} {verb}: {flavour.value}")
        podman.caller = self._caller
        try:
            if flavour is Flavour.FAILED:
                raise RuntimeCallError(podman.rng.choice(BIND_ERRORS), verb, "an injected failure")
            if podman.rng.random() < podman.odds.takes_effect_late:
                podman.watcher.note(f"{self._caller.name} {verb}: a timeout, and it will happen")
                delay_s = podman.rng.uniform(0.05, LATE_EFFECT_S)
                given_up_at = podman.clock.now().mono
                asyncio.get_running_loop().call_later(delay_s, podman.happen_late, effect, given_up_at, context=NOBODY)
                raise RuntimeCallError(ErrorKind.TIMEOUT, verb, "an injected timeout")
            return self._perform(verb, flavour, effect, cut_short)
        finally:
            podman.caller = None
            if flavour is Flavour.CUT_SHORT:
                podman.die(f"over {verb}")

    async def _answer_travels(self, verb: str) -> None:
        await asyncio.sleep(self._latency_s_now())
        if self.podman.rng.random() < self.podman.odds.kills_caller:
            self._caller.die(f"after {verb}")
        await self._caller.turn()

    def _latency_s_now(self) -> float:
        rng = self.podman.rng
        return rng.uniform(0.001, SLOW_S if rng.random() < self.podman.odds.is_slow else LATENCY_S)


def uid_of(container: FakeContainer) -> str:
    return container.labels.get(labels.POD_UID, "")


def _draw(rng: random.Random, odds: Odds) -> Flavour | None:
    left = rng.random()
    for chance, flavour in (
        (odds.fails, Flavour.FAILED),
        (odds.times_out, Flavour.TIMED_OUT),
        (odds.times_out_with_effect, Flavour.TIMED_OUT_WITH_EFFECT),
        (odds.kills_podman, Flavour.CUT_SHORT),
    ):
        if left < chance:
            return flavour
        left -= chance
    return None
