"""Commands to the agent as a whole, as users give them: by a request on the admin socket, or by SIGHUP."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

from ipc.host.clock import Clock
from ipc.host.log import verbosity
from ipc.host.log.verbosity import Verbosity
from ipc.k8s.podobjects.config_objects import ConfigObject, ObjectKey
from ipc.link.messages.cluster import RatesChanged
from ipc.link.messages.node_worker import SetLogRotation
from ipc.link.messages.pod_worker import Freeze
from ipc.link.messages.wait_reasons import NextStep
from ipc.link.shm.board import Board
from supervisor.config.resolution.cluster_section import cluster_settings
from supervisor.config.settings import Settings, SettingsError
from supervisor.config.shown_settings import shown_settings
from supervisor.control import message_ids
from supervisor.control.configuration import Configuration
from supervisor.control.message_ids import line_of_kind
from supervisor.control.shutdown_control import ShutdownControl
from supervisor.loop.loop import SyncLoop
from supervisor.processes import sd_notify
from supervisor.processes.child_manager import ChildManager
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.commands import FreezeAnswered, GarbageCollected, RestsOn
from supervisor.protocol.events import (
    FreezeRequest,
    GarbageRequest,
    LoopEvent,
    NodeShutdownBegan,
    NodeShutdownCalledOff,
    SettingsChanged,
    ShutdownCause,
    StopPods,
    WorkerLeaving,
)
from supervisor.protocol.garbage_report import GarbageReport
from supervisor.protocol.refusals import RequestRefused

log = logging.getLogger(__name__)


class AgentControl:
    """Turns commands into events of the sync loop. Owns the answers that are awaited, and the levels of the log."""

    def __init__(
        self,
        configuration: Configuration,
        loop: SyncLoop,
        children: ChildManager,
        board: Board,
        shutdown: ShutdownControl,
        clock: Clock,
        *,
        feed: Callable[[LoopEvent], None],
        end: Callable[[], None],
        report_agent: Callable[[], None],
    ) -> None:
        self._configuration = configuration
        self._loop = loop
        self._children = children
        self._board = board
        self._shutdown = shutdown
        self._clock = clock
        self._feed = feed
        self._end = end
        self._report_agent = report_agent
        self._verbosity = configuration.settings.logging.levels
        self._tickets = itertools.count(1)
        self._garbage: dict[int, asyncio.Future[GarbageReport]] = {}
        """Collections that somebody has asked for, by ticket."""
        self._freezes: dict[int, asyncio.Future[FreezeAnswered]] = {}
        """Requests to pause or resume a pod, likewise."""

    # --- pods ----------------------------------------------------------------------------------------------------

    def is_going_down(self, namespace: str, name: str) -> bool:
        """Whether a pod of that name is on its way out."""
        return self._loop.is_going_down(namespace, name)

    def restart_container(self, namespace: str, name: str, container: str, grace_period_s: int | None) -> RestsOn:
        """Begin to replace one container of a pod, and return what survives with the request. Raises RequestRefused."""
        self._feed(self._loop.container_restarts.request(namespace, name, container, grace_period_s))
        return RestsOn(restarts=self._loop.durable.requested_restarts.version)

    async def freeze_pod(self, namespace: str, name: str, freeze: Freeze) -> None:
        """Pause a pod, or resume it. Raises RequestRefused."""
        ticket, answer = next(self._tickets), asyncio.get_running_loop().create_future()
        self._freezes[ticket] = answer
        self._feed(FreezeRequest(ticket=ticket, namespace=namespace, name=name, freeze=freeze))
        answered = await asyncio.shield(answer)
        if answered.code >= 400:
            raise RequestRefused(answered.code, answered.reason, answered.message)

    def freeze_answered(self, answer: FreezeAnswered) -> None:
        """The sync loop is done with such a request."""
        self._freezes.pop(answer.ticket).set_result(answer)

    def config_object(self, key: ObjectKey) -> ConfigObject | None:
        """An object beside pods with its values; None when there is none."""
        return self._loop.config_object(key)

    def next_step(self, namespace: str, name: str) -> NextStep | None:
        """Next step of the pod of that name; None for no such pod."""
        return self._loop.next_step(namespace, name, self._clock.now())

    async def collect_garbage(self, *, dry_run: bool) -> GarbageReport:
        """Collect garbage, or only look for it."""
        ticket, answer = next(self._tickets), asyncio.get_running_loop().create_future()
        self._garbage[ticket] = answer
        self._feed(GarbageRequest(ticket, dry_run))
        return await asyncio.shield(answer)

    def garbage_collected(self, collected: GarbageCollected) -> None:
        """The sync loop is done with such a collection."""
        self._garbage.pop(collected.ticket).set_result(collected.report)

    # --- node, workers, agent ------------------------------------------------------------------------------------

    def drain(self) -> bool:
        """Begin to end the pods in order; False when the node is drained already."""
        is_first = not self._shutdown.is_drained
        self._feed(NodeShutdownBegan(ShutdownCause.DRAIN))
        return is_first

    def uncordon(self) -> bool:
        """Give a drained node its pods back, unless its host goes down; False when it is not drained."""
        is_drained = self._shutdown.is_drained
        self._feed(NodeShutdownCalledOff(ShutdownCause.DRAIN))
        return is_drained

    def restart_worker(self, slot: int) -> None:
        """Ask a worker to leave; its successor follows."""
        self._feed(WorkerLeaving(slot))
        self._children.end(slot, self._configuration.settings.workers.stop_timeout_s)
        self._report_agent()

    def stop(self, *, pods: bool) -> None:
        """Begin to end; with ``pods`` when all of them are gone."""
        if pods:
            self._feed(StopPods())
        else:
            self._end()

    # --- configuration -------------------------------------------------------------------------------------------

    def configuration(self) -> str:
        """The configuration in effect, as JSON."""
        return shown_settings(self._configuration.settings)

    def set_log_level(self, area: str, level: str) -> Verbosity:
        """Change which lines are logged. Raises ValueError for an unknown area or level."""
        self._log_like(self._verbosity.changed(area, level))
        log.info("log levels were changed to: %s", ", ".join(self._verbosity.words))
        return self._verbosity

    def _log_like(self, wanted: Verbosity) -> None:
        """Here at once; children read it on the board at their next heartbeat."""
        self._verbosity = wanted
        verbosity.apply(wanted)
        self._board.record_verbosity(wanted)

    def hang_up(self) -> None:
        """SIGHUP: reload, or say in the log why not."""
        try:
            self.reload()
        except SettingsError as error:
            log.error("configuration not reloaded: %s", error)

    def reload(self) -> tuple[str, ...]:
        """Read the configuration file again; what changed, and what needs a restart. Raises SettingsError."""
        sd_notify.notify("RELOADING=1")
        try:
            changes = self._configuration.reload()
        finally:
            sd_notify.notify("READY=1")
        settings = self._configuration.settings
        self._log_like(settings.logging.levels)
        self._children.send(NODE_SLOT, SetLogRotation(policy=settings.log_rotation))
        if (changed := _rates(settings)) is not None:
            self._children.send(NODE_SLOT, changed)
        self._feed(SettingsChanged(settings))
        self._report_agent()
        words = "; ".join(changes) or "nothing in it changed"
        log.info("configuration reloaded: %s", words, extra=line_of_kind(message_ids.RELOADED))
        return changes


def _rates(settings: Settings) -> RatesChanged | None:
    """The rates of requests in the settings; None without a cluster."""
    cluster = cluster_settings(settings)
    if cluster is None:
        return None
    return RatesChanged(
        api_qps=cluster.api_qps,
        api_burst=cluster.api_burst,
        event_qps=cluster.event_qps,
        event_burst=cluster.event_burst,
    )
