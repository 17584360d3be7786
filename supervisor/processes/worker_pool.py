"""The worker pool decides which child runs in which slot, and what follows a death (OTP's supervisor: a child is a
declared value).

Sans-I/O: reports and the time go in, commands come out. A slot's next incarnation is asked for only after the exit of
the one before it was reaped, so there is never more than one actor per slot.
"""

from __future__ import annotations

import enum
import math
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ipc.link.eventloop.backoff import Backoff
from ipc.link.messages.api_server import WorkerInfo
from ipc.link.messages.zygote import Exited
from ipc.link.metrics import rootlet as metrics
from ipc.link.shm.metric_cells import METERS
from ipc.link.wire.boot import EXIT_BOOT_ERROR, EXIT_IDLE, EXIT_RESPAWN, Role
from supervisor.processes.scheduling import STOPPED, Scheduling, Silence

NODE_SLOT = 0
API_SLOT = 1
PODMAN_SLOT = 2
DIALER_SLOT = 3
FIRST_POD_SLOT = 4
MAX_POD_WORKERS = 64
QUARANTINE_SLOT = FIRST_POD_SLOT + MAX_POD_WORKERS
"""The slot of the pod worker that has those pods only that have killed theirs (`supervisor.pods.crash_attribution`)."""
SLOTS = QUARANTINE_SLOT + 1

CHECK_PERIOD_S = 1.0
"""Between two checks of the heartbeats, in seconds. By what one is late nobody has run: it counts for no worker."""
SUSPECT_SHARE = 0.26
"""Part of the heartbeat's timeout after which a silent child is looked at: a little more than it has between two."""
ABORT_WINDOW_S = 1.0
"""Between SIGABRT (the hung child writes its stack) and SIGKILL, in seconds."""
STEADY_S = 10.0
"""A child that ran for so long, in seconds, is replaced at once; of others the first in a row."""
EARLY_DEATHS = Backoff(0.1, 5.0)
"""Before the successor of the second in a row that did not, and of every further one."""
FAILED_SPAWNS = Backoff(0.1, 1.0)
"""Before a fork that failed is tried again: one that fails again costs next to nothing."""


def fed_slots(*, is_member: bool) -> tuple[int, ...]:
    """Slots of those who tell others of pods and of the agent. ``is_member``: this host is a node of a cluster, to
    which the node worker speaks."""
    return (API_SLOT, NODE_SLOT) if is_member else (API_SLOT,)


def longest_hang_s(heartbeat_timeout_s: float) -> float:
    """Seconds within which a child that hangs is gone, including the ticks at which the board is read."""
    return heartbeat_timeout_s + 2 * (CHECK_PERIOD_S + ABORT_WINDOW_S)


class ChildSpec(msgspec.Struct, frozen=True):
    """A child as it is declared."""

    slot: int
    role: Role
    name: str
    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}
    heartbeat: bool = True
    """Whether it writes one to its board row."""
    on_demand: bool = False
    """Whether it may leave with EXIT_IDLE; then its successor comes with the next connection to what it serves."""
    expendable: bool = False
    """Whether its deaths count for no restart intensity: it runs so that no other child dies."""


class SlotState(enum.StrEnum):
    STARTING = "Starting"
    RUNNING = "Running"
    HUNG = "Hung"
    DRAINING = "Draining"
    """Runs; its pods move away, then it is stopped. No slot has this state, it is only shown."""
    STOPPING = "Stopping"
    GONE = "Gone"
    IDLE = "Idle"
    """No process runs until a client connects."""


Beats = Mapping[int, tuple[int, float]]
"""Incarnation and monotonic time of the newest heartbeat by slot, read from the board."""
NO_LOOKS: Final[Mapping[int, Scheduling]] = {}

EMPTY = frozenset({SlotState.GONE, SlotState.IDLE})
"""States of a slot without a process."""


class SpawnChild(msgspec.Struct, frozen=True):
    spec: ChildSpec
    incarnation: int


class KillChild(msgspec.Struct, frozen=True):
    slot: int
    incarnation: int
    signum: int
    why: str


class ShutDownChild(msgspec.Struct, frozen=True):
    """Ask the child over its link to finish the step in hand and leave."""

    slot: int
    incarnation: int


class RespawnLater(msgspec.Struct, frozen=True):
    """Ask for the slot's next incarnation (`WorkerPool.respawn`) when so much time has passed."""

    slot: int
    after_s: float


class AwaitDemand(msgspec.Struct, frozen=True):
    """Ask for the slot's next incarnation (`WorkerPool.demanded`) when a client connects to its socket."""

    slot: int
    role: Role


class GiveUp(msgspec.Struct, frozen=True):
    """The agent must end with this reason."""

    reason: str


PoolCommand = SpawnChild | RespawnLater | AwaitDemand | KillChild | ShutDownChild | GiveUp


def too_many_deaths(deaths: Sequence[float], now: float, limit: int, period_s: float) -> bool:
    """OTP's restart intensity: more than ``limit`` deaths within the last ``period_s`` seconds."""
    return sum(1 for death in deaths if now - death <= period_s) > limit


class _Slot:
    def __init__(self, spec: ChildSpec) -> None:
        self.spec = spec
        self.incarnation = 0
        self.pid = 0
        self.state = SlotState.GONE
        self.since = 0.0
        self.beat = 0.0
        """The last heartbeat seen of this incarnation, monotonic seconds."""
        self.deaths = 0
        self.early_deaths = 0
        """Incarnations in a row that exited within `STEADY_S`."""
        self.failed_spawns = 0
        """Incarnations in a row that could not be spawned."""
        self.spawned_at = 0.0
        """When the newest one was asked for, monotonic seconds."""
        self.declared = True
        self.retired = False
        """No incarnation follows its exit."""
        self.kill_at = math.inf
        """STOPPING: when it has had time enough, monotonic seconds."""
        self.silence = Silence()

    @property
    def is_empty(self) -> bool:
        return self.state in EMPTY

    @property
    def shown_state(self) -> SlotState:
        is_draining = self.state is SlotState.RUNNING and not self.declared
        return SlotState.DRAINING if is_draining else self.state


class WorkerPool:
    """State of all slots; every method returns the commands that follow."""

    def __init__(self, specs: Iterable[ChildSpec], *, heartbeat_timeout_s: float, max_deaths: int, period_s: float):
        self._slots = {spec.slot: _Slot(spec) for spec in specs}
        self._heartbeat_timeout_s = heartbeat_timeout_s
        self._max_deaths = max_deaths
        self._period_s = period_s
        self._deaths: list[float] = []
        self._explained: set[int] = set()
        """Slots whose next death does not count for the restart intensity."""
        self._checked = math.inf
        """The newest check of the heartbeats, monotonic seconds."""
        self._stopping = False

    def start(self, now: float) -> list[PoolCommand]:
        """Ask for the first incarnation of every slot."""
        return [self._spawn(slot, now) for slot in self._slots.values()]

    def spawned(self, slot: int, incarnation: int, pid: int) -> None:
        entry = self._slots[slot]
        if entry.incarnation == incarnation:
            entry.pid, entry.failed_spawns = pid, 0
            if not entry.spec.heartbeat and entry.state is SlotState.STARTING:
                entry.state = SlotState.RUNNING

    def ready(self, slot: int, pid: int, now: float) -> None:
        """Note a worker's first message, perhaps before the zygote's. A worker that was asked to leave meanwhile is no
        longer expected to work."""
        entry = self._slots[slot]
        entry.pid = pid
        if entry.state is SlotState.STARTING:
            entry.state, entry.since = SlotState.RUNNING, now

    def exited(self, report: Exited, now: float) -> list[PoolCommand]:
        """Reaped. Either the next incarnation, or the end of the agent."""
        entry = self._slots[report.slot]
        if report.incarnation != entry.incarnation:
            return []
        was_asked, entry.state, entry.pid = entry.state is SlotState.STOPPING, SlotState.GONE, 0
        if self._stopping:
            return []
        if was_asked or report.exit_code == EXIT_RESPAWN:
            return [] if entry.retired else [self._spawn(entry, now)]
        if report.exit_code == EXIT_IDLE and entry.spec.on_demand:
            entry.state = SlotState.IDLE
            return [AwaitDemand(report.slot, entry.spec.role)]
        if report.exit_code == EXIT_BOOT_ERROR:
            return [GiveUp(f"{entry.spec.name} could not start; its own message says why")]
        return [self._died(entry, now)]

    def _died(self, entry: _Slot, now: float) -> PoolCommand:
        """A child has exited that was not asked to leave."""
        slot, name = entry.spec.slot, entry.spec.name
        entry.deaths += 1
        METERS.counter(metrics.WORKER_DEATHS, entry.spec.role).inc()
        new = [] if slot in self._explained or entry.spec.expendable else [now]
        self._explained.discard(slot)
        self._deaths = [death for death in self._deaths if now - death <= self._period_s] + new
        if too_many_deaths(self._deaths, now, self._max_deaths, self._period_s):
            return GiveUp(f"more than {self._max_deaths} child deaths in {self._period_s:g} s, the last {name}")
        entry.early_deaths = entry.early_deaths + 1 if now - entry.spawned_at < STEADY_S else 0
        if entry.early_deaths <= 1:
            return self._spawn(entry, now)
        return RespawnLater(slot, EARLY_DEATHS.pause_s(entry.early_deaths - 1))

    def spawn_failed(self, slot: int, incarnation: int) -> list[PoolCommand]:
        """An incarnation could not be spawned: no death for the restart intensity; it is tried again later."""
        entry = self._slots[slot]
        if incarnation != entry.incarnation:
            return []
        entry.state, entry.pid = SlotState.GONE, 0
        if self._stopping or entry.retired:
            return []
        entry.failed_spawns += 1
        return [RespawnLater(slot, FAILED_SPAWNS.pause_s(entry.failed_spawns))]

    def respawn(self, slot: int, now: float) -> list[PoolCommand]:
        """Commands at the end of a worker's pause."""
        entry = self._slots[slot]
        is_wanted = entry.state is SlotState.GONE and not (self._stopping or entry.retired)
        return [self._spawn(entry, now)] if is_wanted else []

    def demanded(self, slot: int, now: float) -> list[PoolCommand]:
        """A client has connected to what an idle slot serves."""
        entry = self._slots[slot]
        is_wanted = entry.state is SlotState.IDLE and not self._stopping
        return [self._spawn(entry, now)] if is_wanted else []

    def explain(self, slot: int) -> None:
        """The death of which the report comes next is not the child's fault: it does not count for the intensity."""
        self._explained.add(slot)

    def declare(self, specs: Iterable[ChildSpec], now: float) -> list[PoolCommand]:
        """Another set of children. New ones start; those that are left out go on until they are `retire`d."""
        declared = {spec.slot: spec for spec in specs}
        for slot, spec in declared.items():
            self._slots.setdefault(slot, _Slot(spec))
        for slot, entry in self._slots.items():
            entry.declared = slot in declared
            entry.retired = entry.retired and not entry.declared
        missing = (entry for entry in self._slots.values() if entry.declared and entry.state is SlotState.GONE)
        return [] if self._stopping else [self._spawn(entry, now) for entry in missing]

    def retire(self, slot: int, now: float, grace_s: float) -> list[PoolCommand]:
        """The end of a child that is declared no more and has nothing left to do; no incarnation follows it."""
        self._slots[slot].retired = True
        return self.end(slot, now, grace_s)

    def end(self, slot: int, now: float, grace_s: float) -> list[PoolCommand]:
        """Ask an incarnation to leave; it is killed when it has not within that time. The next one follows its exit; it
        comes at once in the place of one that is idle."""
        entry = self._slots[slot]
        if entry.state is SlotState.IDLE:
            return self.demanded(slot, now)
        if entry.is_empty or entry.state is SlotState.STOPPING:
            return []
        entry.state, entry.kill_at = SlotState.STOPPING, now + grace_s
        if entry.spec.role is Role.EXEC:
            return [self._kill(entry, signal.SIGTERM, "it is to leave")]
        return [ShutDownChild(slot, entry.incarnation)]

    def suspects(self, beats: Beats, now: float) -> dict[int, int]:
        """Slots whose child is silent or never says anything, with its pid: `check_heartbeats` wants to know how each
        is scheduled."""
        return {
            slot: entry.pid
            for slot, entry in self._slots.items()
            if entry.pid and not entry.is_empty and self._is_suspect(entry, beats.get(slot), now)
        }

    def _is_suspect(self, entry: _Slot, beat: tuple[int, float] | None, now: float) -> bool:
        silent_s = now - self._last_beat(entry, beat)
        return not entry.spec.heartbeat or silent_s > SUSPECT_SHARE * self._heartbeat_timeout_s

    def check_heartbeats(
        self, beats: Beats, now: float, looks: Mapping[int, Scheduling] = NO_LOOKS
    ) -> list[PoolCommand]:
        """Commands that end those that hang, and those that were asked to leave and do not; and that continue those
        that were stopped. ``looks`` are those at `suspects`."""
        late_s = max(0.0, now - self._checked - CHECK_PERIOD_S)
        self._checked = now
        commands: list[PoolCommand] = []
        for slot, entry in self._slots.items():
            commands += self._check(entry, beats.get(slot), looks.get(slot), late_s, now)
        return commands

    def next_check_s(self, beats: Beats, now: float) -> float:
        """Seconds until a silent child will have been so for too long, or an aborted one will have had its time: a
        check then need not wait for the next in turn. Infinite where none is due."""
        due = (self._due(entry, beats.get(slot), now) for slot, entry in self._slots.items())
        return min((at - now for at in due if at > now), default=math.inf)

    def _due(self, entry: _Slot, beat: tuple[int, float] | None, now: float) -> float:
        if entry.is_empty or entry.state is SlotState.STOPPING or not entry.spec.heartbeat:
            return math.inf
        if entry.state is SlotState.HUNG:
            return entry.since + ABORT_WINDOW_S
        if not self._is_suspect(entry, beat, now):
            return math.inf
        last = self._last_beat(entry, beat)
        return last + self._heartbeat_timeout_s + entry.silence.excused_until_now_s(last)

    def _check(
        self, entry: _Slot, beat: tuple[int, float] | None, look: Scheduling | None, late_s: float, now: float
    ) -> Iterator[PoolCommand]:
        if look is not None and look.state == STOPPED:
            yield self._kill(entry, signal.SIGCONT, "it was stopped")
        if entry.state is SlotState.STOPPING and now > entry.kill_at:
            yield self._kill(entry, signal.SIGKILL, "still there after it was asked to leave")
        if not entry.spec.heartbeat or entry.is_empty or entry.state is SlotState.STOPPING:
            return
        last = self._last_beat(entry, beat)
        silent_s = now - last - entry.silence.excused_s(last, look, late_s, now)
        if entry.state is SlotState.HUNG and now - entry.since > ABORT_WINDOW_S:
            yield self._kill(entry, signal.SIGKILL, "still there after SIGABRT")
        if entry.state is not SlotState.HUNG and silent_s > self._heartbeat_timeout_s:
            entry.state, entry.since = SlotState.HUNG, now
            yield self._kill(entry, signal.SIGABRT, f"no heartbeat for {now - last:.1f} s")

    def _last_beat(self, entry: _Slot, beat: tuple[int, float] | None) -> float:
        """Unreadable while it is being written: then the last one counts."""
        if beat is not None and beat[0] == entry.incarnation:
            entry.beat = max(entry.beat, beat[1])
        return max(entry.since, entry.beat)

    def replace(self, slot: int, why: str) -> list[PoolCommand]:
        """End an incarnation that broke its protocol; the next one follows its exit."""
        entry = self._slots[slot]
        if entry.is_empty:
            return []
        return [self._kill(entry, signal.SIGKILL, why)]

    def stop(self, signum: int, spare: int | None = None) -> list[PoolCommand]:
        """Orderly end: no slot is restarted from here on. The slot to spare outlives the others (it serves them)."""
        self._stopping = True
        commands: list[PoolCommand] = []
        for slot, entry in self._slots.items():
            if not entry.is_empty and slot != spare:
                entry.state, entry.kill_at = SlotState.STOPPING, math.inf
                commands.append(self._kill(entry, signum, "the agent stops"))
        return commands

    def lost(self) -> None:
        """The zygote is gone: its children go with it (PDEATHSIG), and no exit will be reported."""
        for entry in self._slots.values():
            entry.state, entry.pid = SlotState.GONE, 0

    def slots(self) -> tuple[int, ...]:
        """Slots that have a process or are to get one."""
        return tuple(s for s, entry in self._slots.items() if not (entry.retired and entry.state is SlotState.GONE))

    def slot_named(self, name: str) -> int | None:
        return next((slot for slot in self.slots() if self._slots[slot].spec.name == name), None)

    def role(self, slot: int) -> Role:
        return self._slots[slot].spec.role

    def incarnation(self, slot: int) -> int:
        """Number of the newest incarnation. It is never used again, also when the slot was empty for a time."""
        return self._slots[slot].incarnation

    def is_running(self, slot: int) -> bool:
        return self._slots[slot].state is SlotState.RUNNING

    def can_restart(self, slot: int) -> bool:
        """Whether the slot runs or is idle: no start or stop is under way."""
        return self._slots[slot].state in (SlotState.RUNNING, SlotState.IDLE)

    def age_s(self, slot: int, now: float) -> float:
        """Seconds since the running incarnation was asked for; 0.0 when none runs."""
        entry = self._slots.get(slot)
        return 0.0 if entry is None or entry.is_empty else now - entry.spawned_at

    def is_leaving(self, slot: int) -> bool:
        """Whether its child was asked to leave."""
        return self._slots[slot].state is SlotState.STOPPING

    def all_gone(self, spare: int | None = None) -> bool:
        return all(entry.is_empty for slot, entry in self._slots.items() if slot != spare)

    def infos(self, pods_per_slot: Mapping[int, int]) -> tuple[WorkerInfo, ...]:
        """Rows of all children, for `get workers`."""
        return tuple(
            WorkerInfo(
                slot=slot,
                role=entry.spec.role.value if entry.spec.role is not Role.EXEC else "podman-service",
                name=entry.spec.name,
                pid=entry.pid,
                incarnation=entry.incarnation,
                state=entry.shown_state.value,
                pods=pods_per_slot.get(slot, 0),
                deaths=entry.deaths,
            )
            for slot, entry in ((slot, self._slots[slot]) for slot in sorted(self.slots()))
        )

    def _spawn(self, entry: _Slot, now: float) -> SpawnChild:
        entry.incarnation += 1
        METERS.counter(metrics.WORKER_STARTS, entry.spec.role).inc()
        entry.spawned_at = now
        entry.state, entry.since, entry.beat, entry.kill_at = SlotState.STARTING, now, 0.0, math.inf
        return SpawnChild(entry.spec, entry.incarnation)

    def _kill(self, entry: _Slot, signum: int, why: str) -> KillChild:
        return KillChild(entry.spec.slot, entry.incarnation, signum, why)
