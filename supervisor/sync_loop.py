"""The kubelet's sync loop as a sans-I/O core: ``handle(event, now) -> [command]``.

Mirrors syncLoopIteration and its handlers (pkg/kubelet/kubelet.go) and the pod workers' rules
(pkg/kubelet/pod_workers.go). Nothing here reads a clock, a socket or a file: the whole of it can be driven by a test or
a simulator. Losing any event but a `PodUpdate` only delays: every dispatch is decided anew from desired and observed.

Different from upstream on purpose: an UPDATE passes admission too (nobody validated it before us) and a refused one
leaves the running pod as it is; orphans get the grace that their labels carry instead of one second.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping

import msgspec

from ipc.api import Pod
from ipc.clock import Instant
from ipc.messages import (
    CancelSync,
    EventReport,
    LookFailed,
    Observation,
    Observe,
    ProbeVerdict,
    ProbingStopped,
    PullEnded,
    PullProgress,
    Relist,
    SyncDone,
    SyncPod,
    Track,
    Untrack,
    WorkType,
)
from ipc.probe_results import ProbeVerdicts
from ipc.runtime import RuntimePodStatus
from supervisor import requeue
from supervisor.admission import Admitted, Rejected, admit, host_ports
from supervisor.dialogue import (
    DeathExplained,
    EventsRestored,
    HousekeepingTick,
    KillPod,
    Log,
    LoopCommand,
    LoopEvent,
    PodsStopped,
    PullWish,
    SettingsChanged,
    SlotVacated,
    SourcesReady,
    StopPods,
    SyncTick,
    UpdateRefused,
    VerdictsRestored,
    Views,
    WorkerDown,
    WorkerLeaving,
    WorkerUp,
)
from supervisor.events import EventRecorder
from supervisor.garbage import NodeGarbage, collect_logs, dead_beyond_maximum, gc_policy, removal_failures
from supervisor.image_pulls import ImagePulls, PullEvent, pull_limits
from supervisor.lives import Lives
from supervisor.looks import Looks
from supervisor.outbox import Outbox
from supervisor.pod_lifecycle import PodLifecycle
from supervisor.probing import Probing, ProbingCommand, needs_sync, take_verdict
from supervisor.removals import Removals
from supervisor.reporter import Reporter, pod_event
from supervisor.rows import NO_ROW
from supervisor.settings import Settings
from supervisor.sources.types import PodOperation, PodUpdate, created_at
from supervisor.status import TERMINAL_PHASES, Failure, is_restarting_all
from supervisor.suspects import Isolation, Suspects
from supervisor.work_queue import WorkQueue
from supervisor.worker_pool import API_SLOT, NODE_SLOT, longest_hang_s

UNSUPPORTED_FIELD = "UnsupportedField"
"""Event reason: the pod runs, without something that its manifest asks for."""
SYNC_CRASH_LOOP_BACK_OFF = "SyncCrashLoopBackOff"
"""Event reason: syncs of the pod kill their worker again and again."""
FAILED_SYNC = "FailedSync"
"""Event reason: nothing is done for a pod whose state cannot be observed (pkg/kubelet/events/event.go)."""
UNAVAILABLE = "Unavailable"
"""A sync's error: Podman does not answer."""
NOT_UPDATED = "update refused, the pod stays as it was"


class SyncLoop:
    """Owns desired pods, their life cycles, the pod cache and the work queue."""

    def __init__(self, settings: Settings, workers: int, pod_rows: int, host_ip: str, rng: random.Random) -> None:
        self._settings = settings
        self._rng = rng
        self._lives = Lives(workers, pod_rows)
        self._suspects = Suspects(longest_hang_s(settings.workers.heartbeat_timeout_s))
        self._looks = Looks()
        self._cache = self._looks.cache
        self._queue = WorkQueue()
        self._reporter = Reporter(settings, host_ip)
        self._pulls = ImagePulls(pull_limits(settings))
        self._probing = Probing()
        self._touched: set[str] = set()
        """Pods that this event may have made ready for dispatch."""
        self._removals = Removals()
        self._garbage = NodeGarbage()
        self._stop_asked_at: float | None = None
        """Monotonic time of StopPods; infinite once it was answered."""
        self._out = Outbox()
        self._handlers: dict[type, Callable[..., None]] = {
            PodUpdate: self._on_pod_update,
            SourcesReady: self._on_sources_ready,
            Views: self._on_views,
            SyncDone: self._on_sync_done,
            EventReport: self._on_event_report,
            LookFailed: self._on_look_failed,
            PullWish: self._pull,
            PullProgress: self._pull,
            PullEnded: self._pull,
            ProbeVerdict: self._on_probe_verdict,
            ProbingStopped: self._on_probing_stopped,
            WorkerUp: self._on_worker_up,
            WorkerLeaving: self._on_worker_leaving,
            WorkerDown: self._on_worker_down,
            SyncTick: self._on_sync_tick,
            HousekeepingTick: self._on_housekeeping,
            EventsRestored: self._on_events_restored,
            VerdictsRestored: self._on_verdicts_restored,
            SettingsChanged: self._on_settings_changed,
            StopPods: self._on_stop_pods,
            KillPod: self._on_kill_pod,
        }

    def handle(self, event: LoopEvent, now: Instant) -> list[LoopCommand]:
        """Take one event, give back everything that has to happen because of it."""
        self._handlers[type(event)](event, now)
        self._dispatch_touched(now)
        self._check_stopped()
        if questions := self._looks.questions():
            self._out.to_node(Observe(uids=questions))
        return self._out.take()

    def pods_per_slot(self) -> Mapping[int, int]:
        """For `get workers`."""
        return self._lives.pods_per_slot

    @property
    def event_history(self) -> EventRecorder:
        """For whoever keeps it on disk."""
        return self._reporter.event_history

    def probe_verdicts(self) -> dict[str, ProbeVerdicts]:
        """What the probes of all containers say, by container id."""
        return {id: said for life in self._lives for id, said in life.verdicts.items()}

    def is_going_down(self, namespace: str, name: str) -> bool:
        """Whether a pod of that name is on its way out: it may be there long after the last source has forgotten it."""
        return bool(self._going_down(namespace, name))

    # --- what is wanted ------------------------------------------------------------------------------------------

    def _on_pod_update(self, update: PodUpdate, now: Instant) -> None:
        if self._stop_asked_at is not None:
            return
        handler = {
            PodOperation.ADD: self._add,
            PodOperation.RESTORE: self._add,
            PodOperation.UPDATE: self._update,
            PodOperation.RECONCILE: self._update,
            PodOperation.REMOVE: self._remove,
            PodOperation.DELETE: self._remove,
        }[update.op]
        # HandlePodAdditions sorts by age: of two that do not fit together the older one has its place.
        for pod in sorted(update.pods, key=created_at):
            handler(pod, update.source, now)

    def _add(self, pod: Pod, source: str, now: Instant) -> None:
        """HandlePodAdditions: admission, then a life cycle; a pod that is still going down waits for its end."""
        uid = pod.metadata.uid
        self._removals.withdraw(uid)
        life = self._lives.get(uid)
        if life is not None and not life.removed:
            return self._update(pod, source, now)
        if life is not None:
            life.successor, life.source = pod, source
            return None
        verdict = self._admit(pod)
        life = self._track(uid, pod, source, 0.0)
        if isinstance(verdict, Rejected):
            life.rejection = Failure(reason=verdict.reason, message=f"Pod was rejected: {verdict.message}")
            life.terminate()
            self._event(life, "Warning", verdict.reason, verdict.message, now)
        else:
            self._warn(life, verdict.warnings, now)
        self._report(life, now)
        return None

    def _update(self, pod: Pod, source: str, now: Instant) -> None:
        """HandlePodUpdates. A pod that was rejected gets another chance with its new spec."""
        life = self._lives.get(pod.metadata.uid)
        if life is None or life.removed:
            return self._add(pod, source, now)
        verdict = self._admit(pod)
        if isinstance(verdict, Rejected):
            self._event(life, "Warning", verdict.reason, f"{NOT_UPDATED}: {verdict.message}", now)
            if life.pod is not None and life.rejection is None:
                self._out.add(UpdateRefused(life.pod))
            return None
        self._warn(life, verdict.warnings, now)
        if life.rejection is not None:
            life.successor = pod
            life.remove(None, now.wall)
        else:
            life.update(pod)
            self._probing.recall(life, self._cache.get(life.uid))
        self._suspects.absolve(life.uid)
        self._touched.add(life.uid)
        self._report(life, now)
        return None

    def _remove(self, pod: Pod, source: str, now: Instant) -> None:
        """HandlePodRemoves. Waits until every source was read once and one full relist has succeeded."""
        life = self._lives.get(pod.metadata.uid)
        if life is None:
            return
        life.successor = None
        self._removals.add(life.uid, pod.metadata.deletion_grace_period_seconds)
        self._carry_out_removals(now)

    def _on_sources_ready(self, _: SourcesReady, now: Instant) -> None:
        self._removals.sources_ready = True
        self._carry_out_removals(now)

    def _carry_out_removals(self, now: Instant) -> None:
        for uid, grace_s in self._removals.take_due(self._cache.relisted_at).items():
            life = self._lives.get(uid)
            if life is not None:
                self._kill(life, grace_s, now)

    def _on_kill_pod(self, kill: KillPod, now: Instant) -> None:
        for life in self._going_down(kill.namespace, kill.name):
            if life.uid in self._removals:
                self._removals.add(life.uid, kill.grace_period_s)
            else:
                self._kill(life, kill.grace_period_s, now)

    def _going_down(self, namespace: str, name: str) -> list[PodLifecycle]:
        """Those that were removed, and those that will be as soon as every source was read."""
        named = self._lives.named(namespace, name)
        return [life for life in named if life.removed or life.uid in self._removals]

    def _on_stop_pods(self, _: StopPods, now: Instant) -> None:
        """Everything of ours goes, whatever the sources say later."""
        self._stop_asked_at = now.mono
        for life in list(self._lives):
            life.successor = None
            self._kill(life, None, now)
        self._out.to_node(Relist())

    def _kill(self, life: PodLifecycle, grace_s: int | None, now: Instant) -> None:
        self._suspects.absolve(life.uid)
        if life.remove(grace_s, now.wall):
            self._cancel(life)
        self._touched.add(life.uid)
        self._report(life, now)

    # --- what was observed ---------------------------------------------------------------------------------------

    def _on_views(self, views: Views, now: Instant) -> None:
        """PLEG: a changed pod is synced (HandlePodSyncs); an unknown one is an orphan, if the sources are known."""
        for observation in (*views.observations, *self._absent(views)):
            self._take_view(observation, now)
        if views.relisted_at:
            acted_at = {life.uid: life.acted_at for life in self._lives}
            self._touched |= set(self._looks.relisted(views.relisted_at, views.unseen, acted_at.get))
            self._carry_out_removals(now)

    def _absent(self, views: Views) -> list[Observation]:
        """The node worker speaks of a pod without a row, and of an unknown one, only while something of it exists."""
        if not views.relisted_at:
            return []
        untracked = {*self._lives.without_row(), *self._cache.unknown(self._lives)} - set(views.unseen)
        return self._looks.absent(views.relisted_at, views.observations, sorted(untracked))

    def _take_view(self, observation: Observation, now: Instant) -> None:
        life = self._lives.get(observation.uid)
        changed = self._looks.take(observation, wanted=life is not None)
        if life is None:
            return
        self._touched.add(life.uid)
        if changed is not None:
            life.observed(running=changed.is_running())
            self._probing.recall(life, changed)
            self._report(life, now, observed_at=changed.observed_at)

    def _on_look_failed(self, failed: LookFailed, now: Instant) -> None:
        """Its status cannot be told: no work until it can (pkg/kubelet/pod_workers.go, podWorkerLoop)."""
        life = self._lives.get(failed.uid)
        if life is not None and life.pod is not None:
            message = f"error determining status: {failed.message}"
            self._on_event_report(pod_event(life.pod, "Warning", FAILED_SYNC, message), now)

    # --- what the workers did ------------------------------------------------------------------------------------

    def _on_sync_done(self, done: SyncDone, now: Instant) -> None:
        life = self._lives.get(done.uid)
        if life is None or not life.answered_by(done):
            return
        if life.is_news(done):
            self._log_sync(life, done)
        life.done(done, now.mono)
        if not done.cancelled and done.error != requeue.STALE_VIEW:
            self._suspects.survived(life.slot, life.uid)
        self._touched |= {life.uid, *self._suspects.suspects()}
        self._reporter.sync_results(life, done)
        for report in removal_failures(self._settings.node_name, life.name, done):
            self._on_event_report(report, now)
        if done.changed:
            self._looks.ask(life.uid)
        due = requeue.due_in(done, now.wall, self._settings, self._rng)
        if due > 0.0:
            self._queue.enqueue(life.uid, now.mono + due)
        else:
            life.pending = True
        self._report(life, now)

    def _on_event_report(self, report: EventReport, now: Instant) -> None:
        self._out.to_api(self._reporter.event(report, now))

    def _pull(self, event: PullEvent, now: Instant) -> None:
        for command in self._pulls.handle(event, now.mono):
            self._out.send(command.slot, command.message)

    def _on_probe_verdict(self, verdict: ProbeVerdict, now: Instant) -> None:
        """handleProbeSync, and the status manager's SetContainerReadiness and SetContainerStartup."""
        life = self._lives.get(verdict.uid)
        if life is None or not take_verdict(life, verdict):
            return
        if needs_sync(verdict):
            life.pending = life.pending or life.phase is WorkType.SYNC
        self._touched.add(life.uid)
        self._report(life, now)

    def _on_probing_stopped(self, stopped: ProbingStopped, now: Instant) -> None:
        self._probing.stopped(stopped.uid)
        self._touched.add(stopped.uid)

    # --- the agent's own processes -------------------------------------------------------------------------------

    def _on_worker_up(self, up: WorkerUp, now: Instant) -> None:
        self._out.up(up.slot, up.incarnation)
        self._touched |= {life.uid for life in self._lives if life.slot == up.slot}
        if up.slot == NODE_SLOT:
            for life in self._lives:
                self._tell_row(life)
                if not self._cache.get(life.uid).is_empty():
                    # A relist that ends before this arrives passes over what is gone: that is not "as it was".
                    self._cache.doubt(life.uid)
            self._looks.ask_again()
            self._pull(up, now)
        if up.slot == API_SLOT:
            self._out.to_api(self._reporter.everything())

    def _on_worker_leaving(self, leaving: WorkerLeaving, now: Instant) -> None:
        self._out.down(leaving.slot)

    def _on_worker_down(self, down: WorkerDown, now: Instant) -> None:
        """Its pods wait for an observation newer than the death, then go on."""
        self._out.down(down.slot)
        self._pull(down, now)
        self._touched |= set(self._probing.down(down.slot))
        lost = [life for life in self._lives if life.in_flight is not None and life.in_flight.slot == down.slot]
        self._find_the_guilty(down, tuple(life.uid for life in lost), now)
        for life in lost:
            life.lost(now.mono)
            self._touched.add(life.uid)

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
        self._on_event_report(report, now)
        self._out.add(Log("warning", f"{life.name}: {SYNC_CRASH_LOOP_BACK_OFF}: {life.sentence}"))
        self._report(life, now)

    def _on_events_restored(self, restored: EventsRestored, now: Instant) -> None:
        self._out.to_api(self._reporter.restore_events(restored.events, now))

    def _on_verdicts_restored(self, restored: VerdictsRestored, now: Instant) -> None:
        self._probing.restore(restored.verdicts)

    def _on_settings_changed(self, change: SettingsChanged, now: Instant) -> None:
        if change.settings.workers.count != self._settings.workers.count:
            self._lives.resize(change.settings.workers.count)
        self._settings = change.settings
        self._reporter.settings_changed(change.settings)

    # --- time ----------------------------------------------------------------------------------------------------

    def _on_sync_tick(self, tick: SyncTick, now: Instant) -> None:
        self._pull(tick, now)
        self._move_pods(now)
        self._suspects.tick(now.mono)
        self._touched |= self._suspects.suspects()
        self._out.to_api(self._reporter.expire_events(now))
        for uid in self._queue.pop_due(now.mono):
            life = self._lives.get(uid)
            if life is not None and not life.finished:
                life.resync()
                self._touched.add(uid)
        for life in self._lives:
            if life.is_past_deadline(now):
                self._terminate_if_terminal(life, now)
                self._touched.add(life.uid)
        self._collect_garbage(now)

    def _move_pods(self, now: Instant) -> None:
        """After another number of workers was set, or when many pods of one are gone."""
        for life in self._lives.move(self._out.is_up):
            self._touched.add(life.uid)
            self._report(life, now)
        for slot in self._lives.vacated():
            self._out.down(slot)
            self._out.add(SlotVacated(slot))

    def _collect_garbage(self, now: Instant) -> None:
        """Only while it is known what is wanted and what runs something may be deleted."""
        is_all_known = self._removals.sources_ready and self._cache.relisted_at > 0.0
        if not is_all_known or self._stop_asked_at is not None or not self._garbage.take_due(now.mono):
            return
        views = self._cache.statuses()
        dead = dead_beyond_maximum(views, self._lives.wanted(), gc_policy(self._settings), now.wall)
        for life in self._lives:
            if life.uid in dead:
                life.collect(dead[life.uid])
                self._touched.add(life.uid)
        self._out.to_node(collect_logs({*self._lives.uids(), *self._cache.unseen}, views, now.wall))

    def _on_housekeeping(self, _: HousekeepingTick, now: Instant) -> None:
        """HandlePodCleanups: what runs with our label and nobody wants is stopped and removed."""
        if self._cache.relisted_at and (self._removals.sources_ready or self._stop_asked_at is not None):
            for uid in self._cache.orphans(self._lives):
                self._adopt_orphan(uid, now)

    def _adopt_orphan(self, uid: str, now: Instant) -> None:
        """It goes down like any pod, by its labels; only a view from now on counts."""
        status = self._cache.get(uid)
        life = self._track(uid, None, "runtime", now.mono)
        life.name = f"{status.namespace}/{status.name}"
        life.remove(None, now.wall)
        self._out.add(Log("info", f"removing {status.namespace}/{status.name} ({uid}): no source wants it"))

    # --- deciding what goes out ----------------------------------------------------------------------------------

    def _dispatch_touched(self, now: Instant) -> None:
        """Only pods that this event concerns: a turn costs nothing for all the others."""
        while self._touched:
            uids, self._touched = sorted(self._touched), set()
            for uid in uids:
                life = self._lives.get(uid)
                if life is not None and life.wants_dispatch():
                    self._dispatch(life, now)
                if life is not None and uid in self._lives:
                    self._probe(self._probing.tell(life, self._cache.entry(uid), self._out.is_up))

    def _dispatch(self, life: PodLifecycle, now: Instant) -> None:
        """Steps 4 to 6 of a pod's way: a view that is new enough, the status before acting, then the worker."""
        entry = self._looks.newer_than(life.uid, life.acted_at)
        if entry is None:
            return
        self._settle(life, entry.status, now)
        if life.at_rest:
            return
        slot, incarnation = life.slot, self._out.incarnation(life.slot)
        if incarnation is None or not self._suspects.may_sync(slot, life.uid, now.mono):
            return
        self._suspects.dispatched(slot, life.uid, now.mono)
        garbage = life.garbage
        flight = life.dispatched(slot, incarnation)
        self._out.send(
            slot,
            SyncPod(
                uid=life.uid,
                generation=flight.generation,
                incarnation=incarnation,
                kind=flight.kind,
                pod=life.pod,
                row=entry.row,
                min_observed_at=life.acted_at,
                status=msgspec.structs.replace(entry.status, observed_at=entry.observed_at) if entry.row < 0 else None,
                grace_period_s=life.grace_period_s,
                remove=life.removed,
                garbage=garbage,
                restarting_all=is_restarting_all(life.status),
                pull_failures=life.pull_failures,
                verdicts=dict(life.verdicts),
            ),
        )

    def _settle(self, life: PodLifecycle, view: RuntimePodStatus, now: Instant) -> None:
        """Phase changes that need no worker: a terminal pod goes down, a pod that is down is done."""
        before = life.phase
        self._terminate_if_terminal(life, now)
        life.settle(view)
        if life.phase is not before:
            self._report(life, now)
        if life.finished and life.removed:
            self._forget(life, now)

    def _terminate_if_terminal(self, life: PodLifecycle, now: Instant) -> None:
        """What its status says, or its deadline, ends a pod with its normal grace; a sync in flight is in the way."""
        ended = life.phase is WorkType.SYNC and self._report(life, now) in TERMINAL_PHASES
        if ended and life.terminate():
            self._cancel(life)

    def _probe(self, commands: Iterable[ProbingCommand]) -> None:
        for command in commands:
            self._out.send(command.slot, command.message)

    def _cancel(self, life: PodLifecycle) -> None:
        if flight := life.in_flight:
            self._out.send(flight.slot, CancelSync(uid=life.uid, generation=flight.generation))

    # --- bookkeeping ---------------------------------------------------------------------------------------------

    def _track(self, uid: str, pod: Pod | None, source: str, acted_at: float) -> PodLifecycle:
        life = self._lives.begin(uid, pod, source, acted_at)
        self._probing.recall(life, self._cache.get(uid))
        self._touched.add(life.uid)
        self._tell_row(life)
        return life

    def _tell_row(self, life: PodLifecycle) -> None:
        if life.row != NO_ROW:
            self._out.to_node(Track(uid=life.uid, row=life.row))

    def _forget(self, life: PodLifecycle, now: Instant) -> None:
        """Nothing of it is left; a successor begins anew."""
        self._lives.end(life)
        self._looks.forget(life.uid)
        self._queue.remove(life.uid)
        self._suspects.forget(life.uid)
        self._probe(self._probing.forget(life.uid))
        self._out.to_node(Untrack(uid=life.uid))
        self._out.to_api(self._reporter.gone(life.uid))
        if life.successor is not None:
            self._add(life.successor, life.source, now)

    def _check_stopped(self) -> None:
        """Answered once, by a relist that began after the question."""
        asked_at = self._stop_asked_at
        if asked_at is None or self._lives or self._cache.relisted_at <= asked_at:
            return
        if self._cache.unseen or self._cache.orphans(()):
            return
        self._stop_asked_at = math.inf
        self._out.add(PodsStopped())

    def _admit(self, pod: Pod) -> Admitted | Rejected:
        """The others are looked at only when they can make a difference: with every pod that comes, all of them would
        be work that grows with the square of their number."""
        is_room = len(self._lives) < self._settings.max_pods
        alone = is_room and not any(host_ports(pod))
        return admit(pod, [] if alone else self._lives.active_pods(), self._settings)

    def _report(self, life: PodLifecycle, now: Instant, *, observed_at: float = 0.0) -> str:
        """Generate the status, tell it if it changed; its phase. The date is of the observation that is the reason."""
        if life.pod is None:
            return ""
        self._out.to_api(self._reporter.pod(life, self._cache.get(life.uid), now, observed_at))
        return life.status.phase if life.status is not None else ""

    def _event(self, life: PodLifecycle, type_: str, reason: str, message: str, now: Instant) -> None:
        assert life.pod is not None
        self._on_event_report(pod_event(life.pod, type_, reason, message), now)
        self._out.add(Log("warning" if type_ == "Warning" else "info", f"{life.name}: {reason}: {message}"))

    def _warn(self, life: PodLifecycle, warnings: tuple[str, ...], now: Instant) -> None:
        for warning in warnings:
            self._event(life, "Warning", UNSUPPORTED_FIELD, warning, now)

    def _log_sync(self, life: PodLifecycle, done: SyncDone) -> None:
        """That Podman is away was said once: that it is for every pod is for who wants to know everything."""
        failed = f" [{done.error}: {done.message}]" if done.error else ""
        is_only_away = done.error == UNAVAILABLE and not done.changed
        level = "debug" if is_only_away else "warning" if done.error else "info"
        self._out.add(Log(level, f"{life.name}: {done.sentence}{failed}"))
