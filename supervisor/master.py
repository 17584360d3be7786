"""The master: an I/O shell around the sync loop. Never calls Podman, never forks.

Input (children, sources, timers, signals) becomes an event for the loop; the commands that the loop answers are carried
out here, or by the child manager. What users ask of the agent: `supervisor.control.agent_control`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import random
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ipc.host.clock import SystemClock, process_cpu
from ipc.host.log.entry import line_about
from ipc.host.process.spare_memory import SpareMemory
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.label_key import LabelKey
from ipc.link.eventloop.shortages import Patient
from ipc.link.eventloop.tasks import BackgroundTasks, ignored, restarted
from ipc.link.messages import event_reasons
from ipc.link.messages.api_server import Request
from ipc.link.messages.base import ProfileTaken, node_event
from ipc.link.messages.catalogue import ChildEvent
from ipc.link.messages.cluster import (
    ObjectStated,
    ObjectWithdrawn,
    PodsListed,
    PodsTaken,
    PodStated,
    PodValuesStated,
    PodWithdrawn,
    ReferencesRead,
)
from ipc.link.messages.event_reasons import EventReason
from ipc.link.messages.node_worker import Relisted, RuntimeHealth, ServiceSilent
from ipc.link.shm.board import Board
from ipc.link.wire.boot import Role
from supervisor.admission.node_resources import node_resources, read_machine
from supervisor.admission.predicates import admitted
from supervisor.agent_report import AgentReport, start_line
from supervisor.config.containers_conf import cgroup_manager
from supervisor.config.credential_providers import read_credential_providers
from supervisor.config.resolution.child_settings import worker_settings
from supervisor.config.settings import Settings
from supervisor.control import message_ids
from supervisor.control.admin_requests import AdminRequests
from supervisor.control.agent_control import AgentControl
from supervisor.control.configuration import Configuration
from supervisor.control.message_ids import line_of_kind
from supervisor.control.shutdown_control import ShutdownControl
from supervisor.doctor.checks import check_host
from supervisor.doctor.findings import Finding, Level
from supervisor.doctor.host import gather
from supervisor.held_sends import HeldSends
from supervisor.host_watch import HostWatch, host_ips
from supervisor.loop.loop import SyncLoop
from supervisor.loop_checkpoints import LoopCheckpoints
from supervisor.metering import LoopMeter
from supervisor.periodic import Periodic, act_periodically
from supervisor.pods.board_rows import SPARE_ROWS
from supervisor.processes import sd_notify
from supervisor.processes.child_manager import ChildManager
from supervisor.processes.child_specs import child_specs
from supervisor.processes.podman_health import PodmanHealth
from supervisor.processes.podman_service import PodmanService
from supervisor.processes.worker_pool import API_SLOT, CHECK_PERIOD_S, NODE_SLOT, PODMAN_SLOT, ChildSpec, WorkerPool
from supervisor.protocol.commands import Log, Send, ShutdownChanged
from supervisor.protocol.events import HousekeepingTick, LoopEvent, SyncTick, WorkerDown, WorkerUp
from supervisor.protocol.source_updates import PodUpdate
from supervisor.record.node_events import BOOT_FILE, NodeEvents
from supervisor.slowness import HOUSEKEEPING_WARNING_S, warn_if_slow
from supervisor.source_feed import SourceFeed
from supervisor.sources.api_source import ApiSource
from supervisor.sources.manager import SourceManager
from supervisor.state_watch import StateWatch, watch_state
from supervisor.tracing import trace_sent, traced_event
from supervisor.wiring import Effects, LoopReport, carry_out, loop_event

log = logging.getLogger(__name__)
_LOOP_LOG = logging.getLogger("supervisor.loop")
_LEVELS = {name.lower(): level for name, level in logging.getLevelNamesMapping().items()}

SYNC_TICK_S = CHECK_PERIOD_S
"""pkg/kubelet/kubelet.go, syncLoop."""
_STARTED = line_of_kind(message_ids.STARTED)


class Master:
    """Connects the sync loop, the sources and the children. Carries commands out."""

    def __init__(
        self,
        configuration: Configuration,
        board: Board,
        zygote: socket.socket,
        zygote_pid: int,
        listening: Mapping[Role, Sequence[socket.socket]],
        service: PodmanService,
        label_key: LabelKey,
    ) -> None:
        settings = configuration.settings
        self._configuration = configuration
        self._board = board
        self._service = service
        self._clock = SystemClock()
        machine = read_machine(settings, cgroup_manager({**os.environ, **service.env}))
        node, found = node_resources(machine, settings), host_ips(settings)
        board.record_host_ips(found)
        rows = settings.max_pods + SPARE_ROWS
        providers = read_credential_providers(settings)
        self._loop = SyncLoop(settings, rows, found, random.Random(), node)
        self._cluster = ApiSource() if settings.cluster.is_configured else None
        self._sources = SourceManager(
            settings, self._clock, self._cluster, warnings_of=lambda pod: admitted(pod, node).warnings
        )
        self._checkpoints = LoopCheckpoints(settings, self._loop.durable, self._clock, written=self._on_written)
        self._sends = HeldSends(self._send, self._checkpoints.is_kept)
        self._podman = PodmanHealth(self._clock, self._node_event)
        self._node_events = NodeEvents(settings.node_name, settings.state_dir / BOOT_FILE, self._node_event)
        self._meter = LoopMeter()
        self._children = ChildManager(
            self._worker_pool(),
            self,
            board,
            self._clock,
            zygote,
            zygote_pid,
            listening,
            lambda: worker_settings(
                self._settings,
                str(service.socket),
                label_key,
                node,
                service.env,
                providers,
                service.seccomp_profile,
                limits_processes=service.limits_processes,
            ),
        )
        self._spare_memory = SpareMemory(process_cpu)
        self._are_adopted_reported = False
        self._ending = asyncio.Event()
        self._exit_code = 0
        self._shutdown = ShutdownControl(settings, self._feed, self._end)
        self._host = HostWatch(configuration, board, machine.devices, self._feed, self._node_event)
        self._report = self._agent_report()
        self._control = self._agent_control()
        self._effects = self._loop_effects()
        self._requests = AdminRequests(self._control, self._sources, self._children, self._take_send)
        self._watchdog = sd_notify.Watchdog(sd_notify.watchdog_timeout_s(os.environ, os.getpid()), SYNC_TICK_S)
        self._tasks = BackgroundTasks(self._on_task_error)
        self._source_feed = SourceFeed(
            self._sources,
            self._tasks,
            feed=self._feed,
            node_event=self._node_event,
            preflight=self._preflight,
            sources_ready=self._report.send,
            cluster_listed=lambda: self._children.send(NODE_SLOT, PodsTaken()),
        )

    @property
    def _settings(self) -> Settings:
        return self._configuration.settings

    def _worker_pool(self) -> WorkerPool:
        workers = self._settings.workers
        return WorkerPool(
            self._child_specs(self._loop.workers),
            heartbeat_timeout_s=workers.heartbeat_timeout_s,
            max_deaths=workers.max_deaths,
            period_s=workers.death_period_s,
        )

    def _agent_report(self) -> AgentReport:
        return AgentReport(
            self._configuration,
            self._loop,
            self._sources,
            self._children,
            self._podman,
            self._shutdown,
            self._host,
            started_at=self._clock.now().wall,
        )

    def _agent_control(self) -> AgentControl:
        return AgentControl(
            self._configuration,
            self._loop,
            self._children,
            self._board,
            self._shutdown,
            self._clock,
            feed=self._feed,
            end=self._end,
            report_agent=self._report.send,
        )

    # --- start and end -------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until the end is asked for or cannot be avoided; the exit code."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._on_internal_error)
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._shutdown.end_after_pods)
        loop.add_signal_handler(signal.SIGHUP, self._control.hang_up)
        log.info("%s", start_line(self._configuration, self._service), extra=_STARTED)
        self._children.start()
        for restored in self._checkpoints.restore():
            self._feed(restored)
        self._node_events.started()
        self._host.started()
        self._shutdown.restore()
        known = self._sources.restore()
        for update in known:
            self._feed(update)
        if not any(isinstance(update, PodUpdate) for update in known):
            self._source_feed.may_begin()
        spawn = self._tasks.spawn
        spawn(self._look_at_host(), name="preflight", on_failure=ignored)
        spawn(self._source_feed.run(), name="sources")
        spawn(self._shutdown.watch(), name="logind")
        state_watch = StateWatch(self._settings, self._checkpoints, self._sources)
        state = functools.partial(watch_state, state_watch, self._node_event)
        spawn(restarted(state, name="state directory"), name="state directory")
        periodic = act_periodically(
            Periodic(lambda: SYNC_TICK_S, Patient("a sync tick", self._tick)),
            Periodic(lambda: self._settings.housekeeping_period_s, Patient("housekeeping", self._housekeeping)),
            Periodic(
                lambda: self._settings.node_status_update_frequency_s, Patient("the node's status", self._report_node)
            ),
        )
        spawn(periodic, name="sync tick, housekeeping and node status")
        if self._settings.devices:
            spawn(self._host.watch_devices(self._report.send), name="devices")
        await self._ending.wait()
        await self._shut_down()
        return self._exit_code

    async def _shut_down(self) -> None:
        """Workers finish the step in hand; containers stay. The Podman service goes last, it serves the others."""
        sd_notify.notify("STOPPING=1")
        log.info("stopping; containers keep running", extra=line_of_kind(message_ids.STOPPING))
        self._tasks.cancel()
        self._requests.close()
        await self._children.shut_down(
            self._settings.workers.stop_timeout_s, spare=PODMAN_SLOT if self._service.argv else None
        )
        await self._sources.close()
        await self._checkpoints.close()

    def give_up(self, reason: str) -> None:
        """End the agent with exit code 1, and that reason in its log."""
        log.critical("giving up: %s", reason, extra=line_of_kind(message_ids.GAVE_UP))
        self._exit_code = 1
        self._end()

    def _end(self) -> None:
        """Begin the orderly end: `run` goes on with it."""
        self._children.expect_end()
        self._ending.set()

    def _on_task_error(self, error: BaseException) -> None:
        """A task that fails unexpectedly is a bug: end, a half-dead agent is worse than none."""
        self.give_up(f"internal error: {error!r}")

    def _on_internal_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback that fails unexpectedly is a bug, too."""
        log.critical("internal error: %s", context["message"], exc_info=context.get("exception"))
        if not self._ending.is_set():
            self.give_up(f"internal error: {context.get('exception')!r}")

    def _tick(self) -> None:
        self._feed(SyncTick())
        self._checkpoints.keep()
        self._on_written()
        self._children.check_heartbeats()
        self._spare_memory.look()
        self._report.send_if_stale()

    def _housekeeping(self) -> None:
        with warn_if_slow(self._clock, "housekeeping", HOUSEKEEPING_WARNING_S):
            self._feed(HousekeepingTick())

    # --- events in, commands out ---------------------------------------------------------------------------------

    def _feed(self, event: LoopEvent) -> None:
        began = self._clock.now()
        self._meter.took(event, began)
        with traced_event(event):
            carry_out(self._loop.handle(event, began), self._effects)
        self._checkpoints.keep_at_once(is_urgent=self._sends.is_waiting)
        ended = self._clock.now().mono
        self._meter.handled(began.mono, ended)
        self._board.record_iteration(ended)
        self._watchdog.iterated(ended)

    def _loop_effects(self) -> Effects:
        return Effects(
            send=self._take_send,
            update_refused=self._on_update_refused,
            log=_write,
            death_explained=self._children.explain,
            workers_wanted=lambda wanted: self._children.declare(
                self._child_specs(wanted.count, quarantine=wanted.quarantine)
            ),
            slot_vacated=lambda slot: self._children.retire(slot, self._settings.workers.stop_timeout_s),
            garbage_collected=self._control.garbage_collected,
            freeze_answered=self._control.freeze_answered,
            pods_stopped=self._on_pods_stopped,
            shutdown_changed=self._on_shutdown_changed,
        )

    def _on_update_refused(self, pod: Pod) -> None:
        self._tasks.spawn(self._sources.hold_back(pod), name="checkpoint of a refused update")

    def _on_pods_stopped(self) -> None:
        self._sources.forget()
        self._end()

    def _on_shutdown_changed(self, change: ShutdownChanged) -> None:
        self._shutdown.changed(change)
        self._report.send()

    def _take_send(self, command: Send) -> None:
        self._sends.take(command, self._clock.now().mono)

    def _send(self, command: Send) -> None:
        trace_sent(command.message)
        self._meter.sent(command.message, self._clock.now())
        self._children.send(command.slot, command.message)

    def _on_written(self) -> None:
        """Files of the state may be as new as what waits for them. What has changed meanwhile is written next."""
        self._sends.look(self._clock.now().mono)
        self._checkpoints.keep_at_once(is_urgent=self._sends.is_waiting)

    def _child_specs(self, pod_workers: int, *, quarantine: bool = False) -> list[ChildSpec]:
        return child_specs(self._service, pod_workers, quarantine=quarantine)

    def _node_event(self, reason: EventReason, message: str) -> None:
        self._feed(node_event(self._settings.node_name, reason, message))

    async def _look_at_host(self) -> None:
        """Log the findings of `rootlet doctor` that need no answer of Podman (supervisor.doctor)."""
        facts = await asyncio.to_thread(gather, self._settings, os.environ)
        known = msgspec.structs.replace(facts, skipped_manifests=())  # told as they are met, see SourceFeed
        for finding in check_host(known, self._settings):
            if finding.level is not Level.OK:
                self._preflight(finding)

    def _preflight(self, finding: Finding) -> None:
        log.warning("preflight: %s", finding)
        self._node_event(event_reasons.PREFLIGHT, str(finding))

    # --- children (ChildEvents) ----------------------------------------------------------------------------------

    def on_fatal(self, reason: str) -> None:
        self.give_up(reason)

    def on_child_up(self, slot: int, incarnation: int, *, running: bool) -> None:
        if slot == NODE_SLOT and self._cluster is not None:
            self._cluster.begin()
        if running:
            self._feed(WorkerUp(slot, incarnation))
        if slot == API_SLOT:
            self._source_feed.may_begin()
        self._report.send()

    def on_child_down(self, slot: int, *, orderly: bool, current_pod: int) -> None:
        self._sends.child_down(slot)
        self._feed(WorkerDown(slot, orderly, current_pod))

    def on_children_changed(self) -> None:
        self._report.send()

    def on_message(self, slot: int, message: ChildEvent) -> None:
        match message:
            case Request():
                self._requests.take(message)
            case PodStated() | ReferencesRead() | PodWithdrawn() | PodsListed() | ObjectStated() | ObjectWithdrawn():
                assert self._cluster is not None, "a node worker says it with a cluster only"
                self._cluster.take(message)
            case ServiceSilent(message=why):
                self._replace_if_hung(why)
            case ProfileTaken():
                self._requests.profiles.taken(message)
            case _:
                self._take_report(slot, message)

    def _take_report(self, slot: int, message: LoopReport) -> None:
        match message:
            case PodValuesStated():
                if self._loop.takes_early(message):
                    return
            case Relisted(started_at=started_at, changed=changed):
                self._board.record_relist(started_at)
                self._tell_adopted(len(changed))
            case RuntimeHealth():
                self._podman.take(message)
                self._node_events.ready(is_ready=message.healthy and not message.network_problem)
            case _:
                pass
        self._feed(loop_event(slot, message, self._board))
        if isinstance(message, RuntimeHealth):
            self._report.send()

    def _tell_adopted(self, pods: int) -> None:
        """A line about the first list of Podman's pods."""
        if not self._are_adopted_reported:
            self._are_adopted_reported = True
            version = self._podman.newest.version or "of unknown version"
            words = "Podman %s runs %d pods of this agent from before: they go on"
            log.info(words, version, pods, extra=line_of_kind(message_ids.ADOPTED))

    def _replace_if_hung(self, why: str) -> None:
        """Our own service lives and is of no use: it is killed and started again, which counts as a death."""
        if self._service.is_hung(self._children.age_s(PODMAN_SLOT)):
            self._node_event(event_reasons.CONTAINER_RUNTIME_REPLACED, f"killing our Podman service: {why}")
            self._children.replace(PODMAN_SLOT, why)

    # --- the agent about itself ----------------------------------------------------------------------------------

    def _report_node(self) -> None:
        self._host.look_at_addresses()
        self._report.send()


def _write(line: Log) -> None:
    """A line of the sync loop's."""
    extra = line_about(line.subject, duration_s=line.duration_s, slot=line.slot)
    _LOOP_LOG.log(_LEVELS[line.level], "%s", line.text, extra=extra)
