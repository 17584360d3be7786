"""The agent's own processes come and go: what that means for the pods that they look after."""

from __future__ import annotations

from ipc.clock import Instant
from ipc.messages import EventReport
from supervisor.dialogue import DeathExplained, SlotVacated, WorkerDown, WorkerLeaving, WorkersWanted, WorkerUp
from supervisor.loop_parts import LoopParts
from supervisor.pod_lifecycle import PodLifecycle
from supervisor.suspects import Isolation
from supervisor.worker_pool import API_SLOT, NODE_SLOT

SYNC_CRASH_LOOP_BACK_OFF = "SyncCrashLoopBackOff"
"""Event reason: syncs of the pod kill their worker again and again."""


class WorkerChanges:
    """Handlers, and how many pod workers were asked for."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._lives = parts.lives
        self._suspects = parts.suspects
        self._out = parts.out
        self._asked_for = parts.lives.workers

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
        self._find_the_guilty(down, tuple(life.uid for life in lost), now)
        for life in lost:
            life.lost(now.mono)
        self._lives.touch(life.uid for life in lost)

    def hire(self) -> None:
        """Ask for as many pod workers as there are to be now."""
        if self._lives.workers != self._asked_for:
            self._asked_for = self._lives.workers
            self._out.add(WorkersWanted(self._asked_for))

    def move_pods(self, now: Instant) -> None:
        """When another number of workers is wanted, or when many pods of one are gone."""
        self._lives.fit_workers()
        self.hire()
        for life in self._lives.move(self._out.is_up):
            self._lives.touch((life.uid,))
            self._parts.announcer.report(life, now)
        for slot in self._lives.vacated():
            self._out.down(slot)
            self._out.add(SlotVacated(slot))

    # --- a pod that kills its worker -----------------------------------------------------------------------------

    def _find_the_guilty(self, down: WorkerDown, in_flight: tuple[str, ...], now: Instant) -> None:
        """A pod that kills its worker every time pauses; one that somebody gives another try gets it."""
        shard = {life.uid: life for life in self._lives if life.slot == down.slot}
        if down.orderly:
            for uid in shard:
                self._suspects.absolve(uid)
        elif guilty := self._suspects.died(down.slot, in_flight, shard.keys() - in_flight, now.mono):
            self._isolate(shard[guilty.uid], guilty, now)
            self._out.add(DeathExplained(down.slot))

    def _isolate(self, life: PodLifecycle, guilty: Isolation, now: Instant) -> None:
        namespace, _, name = life.name.rpartition("/")
        life.sentence = (
            f"{guilty.deaths} deaths of its worker in a row while this pod was synced; next try in {guilty.wait_s:g} s"
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
