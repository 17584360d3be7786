"""The agent's own processes come and go: what that means for the pods that they look after."""

from __future__ import annotations

from ipc.host.clock import Instant
from ipc.messages.base import EventReport
from ipc.shm.board import pod_digest
from supervisor.podworkers.pod_lifecycle import PodLifecycle
from supervisor.podworkers.poison_pods import Isolation
from supervisor.processes.worker_pool import API_SLOT, NODE_SLOT
from supervisor.protocol.loop_protocol import (
    DeathExplained,
    SlotVacated,
    WorkerDown,
    WorkerLeaving,
    WorkersWanted,
    WorkerUp,
)
from supervisor.syncloop.parts import LoopParts

SYNC_CRASH_LOOP_BACK_OFF = "SyncCrashLoopBackOff"
"""Event reason: the pod kills its worker again and again."""


class WorkerChanges:
    """Handlers, and how many pod workers were asked for."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._lives = parts.lives
        self._suspects = parts.suspects
        self._out = parts.out
        self._asked_for = WorkersWanted(parts.lives.workers)

    def on_worker_up(self, up: WorkerUp, now: Instant) -> None:
        self._out.up(up.slot, up.incarnation)
        self._lives.touch(life.uid for life in self._lives if life.slot == up.slot)
        if up.slot == NODE_SLOT:
            self._tell_node()
            self._out.send_all(self._parts.pulls.handle(up, now.mono))
        if up.slot == API_SLOT:
            self._out.to_api(self._parts.reporter.everything())

    def _tell_node(self) -> None:
        """A new node worker knows nothing."""
        for life in self._lives:
            self._out.track(life)
            if not self._parts.cache.get(life.uid).is_empty():
                # A relist that ends before this arrives passes over what is gone: that is not "as it was".
                self._parts.cache.doubt(life.uid)
        self._parts.looks.ask_again()

    def on_worker_leaving(self, leaving: WorkerLeaving, now: Instant) -> None:
        self._out.down(leaving.slot)

    def on_worker_down(self, down: WorkerDown, now: Instant) -> None:
        """Its pods wait for an observation newer than the death, then go on."""
        self._out.down(down.slot)
        self._out.send_all(self._parts.pulls.handle(down, now.mono))
        self._lives.touch(self._parts.probing.down(down.slot))
        lost = [life for life in self._lives if life.in_flight is not None and life.in_flight.slot == down.slot]
        guilty = self._find_the_guilty(down, tuple(life.uid for life in lost), now)
        for life in lost:
            life.lost(now.mono)
        self._lives.touch(life.uid for life in lost)
        if guilty is not None:
            self._isolate(guilty, down, now)

    def hire(self) -> None:
        """Ask for as many pod workers as there are to be now."""
        wanted = WorkersWanted(self._lives.workers, self._lives.quarantine)
        if wanted != self._asked_for:
            self._asked_for = wanted
            self._out.add(wanted)

    def move_pods(self, now: Instant) -> None:
        """When another number of workers is wanted, when many pods of one are gone, and in and out of quarantine."""
        self._lives.fit_workers()
        for life in self._lives.move(self._out.is_up, self._suspects.convicts()):
            self._lives.touch((life.uid,))
            self._parts.announcer.report(life, now)
        self.hire()
        for slot in self._lives.vacated():
            self._out.down(slot)
            self._out.add(SlotVacated(slot))

    # --- a pod that kills its worker -----------------------------------------------------------------------------

    def _find_the_guilty(self, down: WorkerDown, in_flight: tuple[str, ...], now: Instant) -> Isolation | None:
        """A pod that kills its worker every time pauses; one that somebody gives another try gets it."""
        shard = {life.uid for life in self._lives if life.slot == down.slot}
        if down.orderly:
            for uid in shard:
                self._suspects.absolve(uid, now.mono)
            return None
        if not down.current_pod:
            return self._suspects.died(down.slot, in_flight, shard.difference(in_flight), now.mono)
        current = next((uid for uid in self._lives.uids() if pod_digest(uid) == down.current_pod), None)
        if current is None:  # it is gone meanwhile, and nobody else has done it
            return None
        return self._suspects.died(down.slot, in_flight, shard.difference(in_flight), now.mono, current=current)

    def _isolate(self, guilty: Isolation, down: WorkerDown, now: Instant) -> None:
        life = self._lives.get(guilty.uid)
        assert life is not None, "who is guilty was found among those that are there"
        if life.slot == down.slot:
            self._lives.confine(life)  # else it moves when it can
        self._lives.touch((life.uid,))
        self._out.add(DeathExplained(down.slot))
        self._tell(life, guilty, now)

    def _tell(self, life: PodLifecycle, guilty: Isolation, now: Instant) -> None:
        namespace, _, name = life.name.rpartition("/")
        life.sentence = (
            f"{guilty.deaths} deaths of its worker in a row while it worked for this pod, "
            f"which is in quarantine now; next try in {guilty.wait_s:g} s"
        )
        report = EventReport(
            uid=life.uid,
            namespace=namespace,
            name=name,
            type="Warning",
            reason=SYNC_CRASH_LOOP_BACK_OFF,
            message=life.sentence,
        )
        self._parts.announcer.event(report, now)
        self._parts.announcer.log("warning", f"{life.name}: {SYNC_CRASH_LOOP_BACK_OFF}: {life.sentence}")
        self._parts.announcer.report(life, now)
