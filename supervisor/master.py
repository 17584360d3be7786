"""The master: an I/O shell around the sync loop and the worker pool. Never calls Podman, never forks.

Everything it hears (links, sources, the zygote, timers, signals) becomes an event for one of the two cores; everything
they answer is carried out here.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from ipc import logs
from ipc.board import Board
from ipc.boot import Role, WorkerMain
from ipc.call_slots import CallSlots
from ipc.clock import SystemClock
from ipc.messages import (
    AbandonPull,
    AgentChanged,
    ApplyManifests,
    DeletePod,
    EventReport,
    Exited,
    LookFailed,
    NotBorn,
    Observed,
    ProbeVerdict,
    ProbingStopped,
    PullEnded,
    PullImage,
    PullProgress,
    Ready,
    Relisted,
    Reply,
    RestartWorker,
    RuntimeHealth,
    ServiceSilent,
    Shutdown,
    Spawned,
    StopAgent,
    SyncDone,
    ZygoteReport,
)
from ipc.prctl import set_process_name
from supervisor import admin_socket, directory_owner, instance_lock, sd_notify, views
from supervisor.children import Children
from supervisor.config_file import load_settings
from supervisor.desired import Desired
from supervisor.dialogue import (
    DeathExplained,
    EventsRestored,
    HousekeepingTick,
    Log,
    LoopEvent,
    PodsStopped,
    PullWish,
    Send,
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
from supervisor.event_keeper import EventKeeper
from supervisor.event_log import EventLog
from supervisor.podman_service import PodmanService, choose_service
from supervisor.probe_memory import ProbeMemory
from supervisor.settings import Settings, SettingsError, worker_settings
from supervisor.settings_reload import diff_reload
from supervisor.slowness import HOUSEKEEPING_WARNING_S, warn_if_slow
from supervisor.sources.types import ManifestError
from supervisor.sync_loop import SyncLoop
from supervisor.version import own_version
from supervisor.worker_pool import (
    API_SLOT,
    DIALER_SLOT,
    FIRST_POD_SLOT,
    NODE_SLOT,
    PODMAN_SLOT,
    SLOTS,
    ChildSpec,
    GiveUp,
    KillChild,
    PoolCommand,
    RespawnLater,
    ShutDownChild,
    SpawnChild,
    WorkerPool,
)
from supervisor.zygote import start_zygote

log = logging.getLogger("rootlet.master")

SYNC_TICK_S = 1.0
"""pkg/kubelet/kubelet.go, syncLoop."""
GC_THRESHOLD = 20_000
"""New containers between two collections, here and in the children: messages and views make no cycles, looking for some
every 700 objects costs more than it finds."""
FAILED_VALIDATION = "FailedValidation"
RUNTIME_DOWN = "ContainerRuntimeDown"
RUNTIME_UP = "ContainerRuntimeUp"
RUNTIME_REPLACED = "ContainerRuntimeReplaced"
EVENTS_FILE = "events.jsonl"
"""Below ``stateDir``."""
PROBES_FILE = "probes.json"
"""Likewise."""
SPARE_ROWS = 64
"""Board rows beyond maxPods: for pods on their way out, and orphans."""


def run_agent(settings: Settings, worker_main: WorkerMain, config_path: Path | None) -> int:
    """The agent's whole life; its exit code. Must be called before any thread or event loop exists.

    Raises:
        instance_lock.InstanceBusy: another agent of this instance runs.
        directory_owner.DirectoryTaken: a directory is that of another instance.
        OSError: a directory or socket cannot be made.
    """
    os.umask(0o077)
    logs.set_up(settings.logging.verbosity, settings.logging.format, "master")
    lock = instance_lock.acquire(settings.admin_socket.with_suffix(".lock"))
    claim_directories(settings)
    service = choose_service(settings, settings.admin_socket.parent.parent, os.environ)
    listening = {
        Role.API_SERVER: admin_socket.listen(settings.admin_socket),
        Role.DIALER: admin_socket.listen(settings.dialer_socket, socket.SOCK_SEQPACKET),
    }
    sockets = (settings.admin_socket, settings.dialer_socket)
    board = Board.create(worker_slots=SLOTS, pod_rows=settings.max_pods + SPARE_ROWS)
    call_slots = CallSlots.create(slots=settings.podman.max_concurrent_mutations, members=SLOTS)
    gc.set_threshold(GC_THRESHOLD)
    zygote, zygote_pid = start_zygote(board, worker_main, sockets, call_slots)
    call_slots.close()
    set_process_name("rootlet-master")
    try:
        master = Master(settings, config_path, board, zygote, listening, service)
        return uvloop.run(master.run())
    finally:
        zygote.close()
        os.waitpid(zygote_pid, 0)
        for path in sockets:
            path.unlink(missing_ok=True)
        os.close(lock)


def claim_directories(settings: Settings) -> None:
    """Raises DirectoryTaken. A disk that takes no mark keeps nobody from looking after pods that run."""
    for directory in (settings.state_dir, settings.pod_logs_dir):
        try:
            directory_owner.claim(directory, settings.instance_name)
        except OSError as error:
            log.warning("cannot mark %s as that of this instance: %s", directory, error.strerror or error)


def child_specs(settings: Settings, service: PodmanService) -> list[ChildSpec]:
    """Every child of the agent, as declared."""
    specs = [
        ChildSpec(NODE_SLOT, Role.NODE_WORKER, "node"),
        ChildSpec(API_SLOT, Role.API_SERVER, "api"),
        ChildSpec(DIALER_SLOT, Role.DIALER, "dialer"),
    ]
    if service.argv:
        specs.insert(0, ChildSpec(PODMAN_SLOT, Role.EXEC, "podman", service.argv, service.env, heartbeat=False))
    count = settings.workers.count
    return specs + [ChildSpec(FIRST_POD_SLOT + n, Role.POD_WORKER, f"pods-{n}") for n in range(count)]


class Master:
    """Wires the cores to the world."""

    def __init__(
        self,
        settings: Settings,
        config_path: Path | None,
        board: Board,
        zygote: socket.socket,
        listening: Mapping[Role, socket.socket],
        service: PodmanService,
    ) -> None:
        self._settings = settings
        self._config_path = config_path
        self._board = board
        self._service = service
        self._clock = SystemClock()
        self._pool = WorkerPool(
            child_specs(settings, service),
            heartbeat_timeout_s=settings.workers.heartbeat_timeout_s,
            max_deaths=settings.workers.max_deaths,
            period_s=settings.workers.death_period_s,
        )
        host = host_ip()
        self._loop = SyncLoop(settings, settings.workers.count, settings.max_pods + SPARE_ROWS, host, random.Random())
        self._desired = Desired(settings, self._clock)
        self._event_keeper = EventKeeper(EventLog(settings.state_dir / EVENTS_FILE), self._clock)
        self._probe_memory = ProbeMemory(settings.state_dir / PROBES_FILE, self._clock)
        self._children = Children(
            zygote, listening, self, lambda: worker_settings(self._settings, str(self._service.socket), host)
        )
        self._health = RuntimeHealth(healthy=False, message="not asked yet")
        self._started_at = self._clock.now().wall
        self._silent_since = 0.0
        """Wall time at which Podman was found not to answer; 0.0 while it does, and before it was asked."""
        self._ending = asyncio.Event()
        self._exit_code = 0
        self._all_gone = asyncio.Event()
        self._requests: dict[type, Callable[[Any], None]] = {
            ApplyManifests: lambda request: self._spawn(self._apply(request)),
            DeletePod: lambda request: self._spawn(self._delete(request)),
            RestartWorker: self._restart_worker,
            StopAgent: self._stop_requested,
        }
        self._tasks: set[asyncio.Task[None]] = set()

    # --- life ----------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Until somebody asks for the end, or there is no going on."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_internal_error)
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._ending.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        self._children.start()
        self._carry_out(self._pool.start(self._clock.now().mono))
        self._feed(EventsRestored(self._event_keeper.restore()))
        self._feed(VerdictsRestored(self._probe_memory.restore()))
        for update in self._desired.restore():
            self._feed(update)
        self._spawn(self._watch_sources())
        self._spawn(self._every(lambda: SYNC_TICK_S, self._tick))
        self._spawn(self._every(lambda: self._settings.housekeeping_period_s, self._housekeeping))
        self._spawn(self._every(lambda: self._settings.node_status_update_frequency_s, self._report_agent))
        await self._ending.wait()
        await self._shut_down()
        return self._exit_code

    async def _shut_down(self) -> None:
        """Workers finish the step in hand; containers stay. The Podman service goes last, it serves the others."""
        sd_notify.notify("STOPPING=1")
        log.info("stopping; containers keep running")
        for task in list(self._tasks):
            task.cancel()
        spare = PODMAN_SLOT if self._service.argv else None
        for slot in self._pool.slots():
            self._children.send(slot, self._pool.incarnation(slot), Shutdown())
        await self._end_children(signal.SIGTERM, spare, self._settings.shutdown_grace_period_s)
        await self._end_children(signal.SIGKILL, spare, self._settings.shutdown_grace_period_s)
        await self._end_children(signal.SIGTERM, None, self._settings.shutdown_grace_period_s)
        await self._end_children(signal.SIGKILL, None, self._settings.shutdown_grace_period_s)
        await self._children.close()
        await self._desired.close()
        await self._event_keeper.close(self._loop.event_history)
        await self._probe_memory.close(self._loop.probe_verdicts())

    async def _end_children(self, signum: int, spare: int | None, grace_s: float) -> None:
        self._all_gone.clear()
        self._carry_out(self._pool.stop(signum, spare))
        try:
            async with asyncio.timeout(grace_s):
                while not self._pool.all_gone(spare):
                    await self._all_gone.wait()
                    self._all_gone.clear()
        except TimeoutError:
            log.warning("children still there %g s after signal %d", grace_s, signum)

    def _give_up(self, reason: str) -> None:
        log.critical("giving up: %s", reason)
        self._exit_code = 1
        self._ending.set()

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        """A task that fails unexpectedly is a bug: say so and end, a half-dead agent is worse than none."""
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.critical("internal error", exc_info=task.exception())
            self._give_up(f"internal error: {task.exception()!r}")

    def _on_internal_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The same for callbacks, and for the tasks that serve the links."""
        log.critical("internal error: %s", context["message"], exc_info=context.get("exception"))
        if not self._ending.is_set():
            self._give_up(f"internal error: {context.get('exception')!r}")

    async def _every(self, period_s: Callable[[], float], act: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(period_s())
            act()

    # --- events in, commands out ---------------------------------------------------------------------------------

    def _feed(self, event: LoopEvent) -> None:
        for command in self._loop.handle(event, self._clock.now()):
            match command:
                case Send(slot, message):
                    self._children.send(slot, self._pool.incarnation(slot), message)
                case UpdateRefused(pod):
                    self._spawn(self._desired.hold_back(pod))
                case Log(level, text):
                    log.log(logging.getLevelNamesMapping()[level.upper()], "%s", text)
                case DeathExplained(slot):
                    self._pool.explain(slot)
                case SlotVacated(slot):
                    self._carry_out(self._pool.retire(slot, self._clock.now().mono, self._leave_within_s))
                case PodsStopped():
                    self._desired.forget()
                    self._ending.set()

    def _carry_out(self, commands: list[PoolCommand]) -> None:
        for command in commands:
            match command:
                case SpawnChild():
                    self._bear(command)
                case RespawnLater(slot, after_s):
                    log.info("slot %d begins anew in %.1f s", slot, after_s)
                    asyncio.get_running_loop().call_later(after_s, self._respawn, slot)
                case KillChild():
                    level = logging.DEBUG if self._ending.is_set() else logging.WARNING
                    log.log(level, "signal %d to slot %d: %s", command.signum, command.slot, command.why)
                    self._children.signal(command)
                case ShutDownChild(slot, incarnation):
                    log.info("slot %d incarnation %d is asked to leave", slot, incarnation)
                    self._children.send(slot, incarnation, Shutdown())
                case GiveUp(reason):
                    self._give_up(reason)

    def _bear(self, command: SpawnChild) -> None:
        try:
            self._children.spawn(command)
        except OSError as error:
            why = f"no file descriptors for it: {error.strerror or error}"
            self._on_not_born(NotBorn(slot=command.spec.slot, incarnation=command.incarnation, message=why))

    def _on_not_born(self, report: NotBorn) -> None:
        self._children.last_words(report.slot, report.incarnation)
        log.warning("slot %d incarnation %d cannot be made: %s", report.slot, report.incarnation, report.message)
        self._carry_out(self._pool.not_born(report.slot, report.incarnation))
        self._all_gone.set()

    def _respawn(self, slot: int) -> None:
        self._carry_out(self._pool.respawn(slot, self._clock.now().mono))

    def _tick(self) -> None:
        self._feed(SyncTick())
        self._event_keeper.keep(self._loop.event_history)
        self._probe_memory.keep(self._loop.probe_verdicts)
        rows = {slot: self._board.read_worker(slot) for slot in self._pool.slots()}
        beats = {slot: (row.incarnation, row.heartbeat) for slot, row in rows.items() if row is not None}
        self._carry_out(self._pool.check_heartbeats(beats, self._clock.now().mono))

    def _housekeeping(self) -> None:
        with warn_if_slow(self._clock, "housekeeping", HOUSEKEEPING_WARNING_S):
            self._feed(HousekeepingTick())

    # --- children (the Listener of supervisor.children) ----------------------------------------------------------

    def on_zygote_report(self, report: ZygoteReport) -> None:
        match report:
            case Spawned(slot=slot, incarnation=incarnation, pid=pid):
                self._pool.spawned(slot, incarnation, pid)
            case NotBorn():
                self._on_not_born(report)
            case Exited():
                self._on_exited(report)

    def _on_exited(self, report: Exited) -> None:
        orderly = self._ending.is_set() or self._pool.is_leaving(report.slot)
        stack = self._children.last_words(report.slot, report.incarnation)
        if not self._ending.is_set():
            what = f"slot {report.slot} incarnation {report.incarnation} (pid {report.pid})"
            level = logging.INFO if orderly and report.exit_code == 0 else logging.WARNING
            log.log(level, "%s ended with %d%s", what, report.exit_code, f"; it was here:\n{stack}" if stack else "")
        self._feed(WorkerDown(report.slot, orderly))
        self._carry_out(self._pool.exited(report, self._clock.now().mono))
        self._all_gone.set()
        self._report_agent()

    def on_zygote_gone(self) -> None:
        self._pool.lost()
        self._all_gone.set()
        if not self._ending.is_set():
            self._give_up("the zygote is gone")

    def on_broken_link(self, slot: int, incarnation: int, why: str) -> None:
        if incarnation == self._pool.incarnation(slot):
            self._carry_out(self._pool.replace(slot, why))

    def on_message(self, slot: int, incarnation: int, message: Any) -> None:
        if incarnation != self._pool.incarnation(slot):
            return
        match message:
            case Ready():
                self._pool.ready(slot, self._clock.now().mono)
                if self._pool.is_running(slot):
                    self._feed(WorkerUp(slot, incarnation))
                self._report_agent()
            case SyncDone() | EventReport() | LookFailed() | PullProgress() | PullEnded():
                self._feed(message)
            case ProbeVerdict() | ProbingStopped():
                self._feed(message)
            case PullImage() | AbandonPull():
                self._feed(PullWish(slot, message))
            case Observed(observations=observations):
                self._feed(Views(views.resolve(self._board, observations)))
            case Relisted(started_at=started_at, changed=changed, unseen=unseen):
                self._feed(Views(views.resolve(self._board, changed), started_at, unseen))
            case RuntimeHealth():
                self._take_health(message)
            case ServiceSilent(message=why):
                self._replace_if_hung(why)
            case _:
                self._requests[type(message)](message)

    def _take_health(self, health: RuntimeHealth) -> None:
        """Our own Podman service takes a moment to answer for the first time: no reason to warn."""
        if health.healthy:
            log.info("Podman answers (API %s)", health.version)
        else:
            level = logging.WARNING if self._health.version else logging.INFO
            log.log(level, "Podman does not answer: %s", health.message)
        self._silent_since = 0.0 if health.healthy else self._silent_since or self._clock.now().wall
        if health.healthy is not self._health.healthy:
            self._tell_health(health)
        self._health = msgspec.structs.replace(health, version=health.version or self._health.version)
        self._report_agent()

    def _tell_health(self, health: RuntimeHealth) -> None:
        """It has changed: an event of the node, once, but not for the first answer of all."""
        if self._health.version:
            type_, reason, message = (
                ("Normal", RUNTIME_UP, "Podman answers again")
                if health.healthy
                else ("Warning", RUNTIME_DOWN, f"Podman does not answer: {health.message}")
            )
            self._node_event(type_, reason, message)

    def _node_event(self, type_: str, reason: str, message: str) -> None:
        node = self._settings.node_name
        self._feed(EventReport(uid="", namespace="", name=node, type=type_, reason=reason, message=message))

    def _replace_if_hung(self, why: str) -> None:
        """Our own service lives and is of no use: it is killed and started again, which counts as a death."""
        if self._service.is_hung(self._pool.age_s(PODMAN_SLOT, self._clock.now().mono)):
            self._node_event("Warning", RUNTIME_REPLACED, f"killing our Podman service: {why}")
            self._carry_out(self._pool.replace(PODMAN_SLOT, why))

    # --- desired state -------------------------------------------------------------------------------------------

    async def _watch_sources(self) -> None:
        announced = False
        async for change in self._desired.watch():
            for error in change.errors:
                self._manifest_error(error)
            for update in change.updates:
                self._feed(update)
            if change.kill is not None:
                self._feed(change.kill)
            if self._desired.all_ready and not announced:
                announced = True
                self._feed(SourcesReady())
                sd_notify.notify("READY=1")

    def _manifest_error(self, error: ManifestError) -> None:
        log.warning("manifest refused: %s", error)
        self._node_event("Warning", FAILED_VALIDATION, str(error))

    async def _apply(self, request: ApplyManifests) -> None:
        self._answer(request.request_id, await self._desired.apply(request.file, request.body))

    async def _delete(self, request: DeletePod) -> None:
        namespace, name = request.namespace, request.name
        going_down = self._loop.is_going_down(namespace, name)
        reply = await self._desired.delete(namespace, name, request.grace_period_s, going_down=going_down)
        self._answer(request.request_id, reply)

    def _answer(self, request_id: int, answer: Reply) -> None:
        reply = msgspec.structs.replace(answer, request_id=request_id)
        self._children.send(API_SLOT, self._pool.incarnation(API_SLOT), reply)

    def _stop_requested(self, request: StopAgent) -> None:
        self._answer(request.request_id, Reply(request_id=0, code=202, results=("stopping",)))
        if request.pods:
            self._feed(StopPods())
        else:
            self._ending.set()

    def _restart_worker(self, request: RestartWorker) -> None:
        """Asked to leave, then killed; its successor follows. Whoever asks sees its incarnation in `get workers`."""
        slot = self._pool.slot_named(request.name)
        reply = Reply(request_id=0, code=202, results=(f"worker/{request.name} restarting",))
        if slot is None:
            reply = Reply(request_id=0, code=404, reason="NotFound", message=f'workers "{request.name}" not found')
        elif not self._pool.is_running(slot):
            text = f'workers "{request.name}" does not run just now: it is about to begin anew'
            reply = Reply(request_id=0, code=409, reason="Conflict", message=text)
        self._answer(request.request_id, reply)
        if slot is not None and reply.code == 202:
            self._feed(WorkerLeaving(slot))
            self._carry_out(self._pool.end(slot, self._clock.now().mono, self._leave_within_s))
            self._report_agent()

    @property
    def _leave_within_s(self) -> float:
        return self._settings.shutdown_grace_period_s

    # --- the agent about itself ----------------------------------------------------------------------------------

    def _reload(self) -> None:
        """SIGHUP: take over what can change; say what cannot."""
        if self._config_path is None:
            return
        sd_notify.notify("RELOADING=1")
        try:
            wanted = load_settings(self._config_path)
        except SettingsError as error:
            log.error("configuration not reloaded: %s", error)
        else:
            self._settings, fixed = diff_reload(self._settings, wanted)
            self._carry_out(self._pool.declare(child_specs(self._settings, self._service), self._clock.now().mono))
            self._feed(SettingsChanged(self._settings))
            self._report_agent()
            log.info("configuration reloaded%s", f"; needs a restart: {', '.join(fixed)}" if fixed else "")
        sd_notify.notify("READY=1")

    def _report_agent(self) -> None:
        changed = AgentChanged(
            version=own_version(),
            instance=self._settings.instance_name,
            node_name=self._settings.node_name,
            pid=os.getpid(),
            started_at=self._started_at,
            runtime_version=self._health.version,
            runtime_healthy=self._health.healthy,
            runtime_message=self._health.message,
            runtime_silent_since=self._silent_since,
            sources_ready=self._desired.all_ready,
            workers=self._pool.infos(self._loop.pods_per_slot()),
        )
        self._children.send(API_SLOT, self._pool.incarnation(API_SLOT), changed)


def host_ip() -> str:
    """The address that outgoing traffic would have; no packet is sent (connect(2) on a datagram socket)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
