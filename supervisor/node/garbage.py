"""Garbage of the node: rounds that come by themselves, and collections that somebody asks for.

Containers go with the next syncs of their pods; images and directories are the node worker's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.node_worker import ImagesCollected, LogsCollected
from supervisor.managers.container_gc import ContainerGc, collect_logs, collection_failures, dead_of_each
from supervisor.managers.image_gc import NO_NODE_WORKER, Collected, ImageGc, wanted_images
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.node_view import ThisNode
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.table import PodTable
from supervisor.processes.worker_pool import NODE_SLOT
from supervisor.protocol.commands import GarbageCollected
from supervisor.protocol.events import GarbageRequest
from supervisor.protocol.garbage_report import DeadContainer, GarbageReport
from supervisor.record.status_manager import StatusManager

NOT_YET: Final = "nothing is collected before all sources were read and Podman was listed, or while the agent stops"


class _Request(msgspec.Struct):
    """A collection that somebody has asked for, with what is known of it so far."""

    ticket: int
    report: GarbageReport
    waits_for: int = 2
    """Answers of the node worker: about images, and about directories."""


class Garbage(msgspec.Struct, eq=False):
    """Handlers of the loop that are about garbage."""

    _node: ThisNode
    _pod_table: PodTable
    _cache: PodCache
    _statuses: StatusManager
    _reporter: PodReporter
    _out: CommandBuffer
    _is_all_known: Callable[[], bool]
    _container_gc: ContainerGc = msgspec.field(default_factory=ContainerGc)
    _image_gc: ImageGc = msgspec.field(default_factory=ImageGc)
    _log_requests: dict[int, _Request] = {}
    _log_number: int = 0

    # --- rounds ---

    def collect_due(self, now: Instant) -> None:
        """Begin the rounds that are due, while it is known what is wanted and what runs."""
        if not self._is_all_known():
            return
        if self._container_gc.take_due(now.mono):
            self._remove_dead(self._find_dead(now))
            self._out_to_logs(now)
        policy = self._node.view.settings.image_gc
        if not policy.is_off and self._out.is_up(NODE_SLOT) and self._image_gc.take_due(now.mono):
            self.collect_images(self._round_ended, now)

    def collect_images(self, then: Collected, now: Instant, *, all_unused: bool = False, report: bool = False) -> None:
        """Have images collected. ``then`` is called once with the end, at the latest when the node worker dies."""
        policy, wanted = self._node.view.settings.image_gc, wanted_images(self._wanted_pods())
        request = self._image_gc.begin(policy, wanted, then, all_unused=all_unused, report=report)
        if self._out.is_up(NODE_SLOT):
            self._out.to_node(request)
        else:
            self._image_gc.ended(ImagesCollected(number=request.number, error=NO_NODE_WORKER), now)

    def collect_unused_images(self, then: Callable[[Instant], None], now: Instant) -> None:
        """Before a pod is evicted because a disk is full (DeleteUnusedImages)."""
        self.collect_images(lambda _, at: then(at), now, all_unused=True)

    def _wanted_pods(self) -> Iterator[tuple[str, Pod]]:
        """Pods that may yet start a container, by name. One that has ended or was evicted does not: its image is of no
        use but to a container that is left of it, and would cost another pod its place."""
        for state in self._pod_table:
            if state.pod is not None and not self._statuses.has_ended(state.uid):
                yield state.name, state.pod
            if state.successor is not None:
                yield state.name, state.successor

    def on_images_collected(self, collected: ImagesCollected, now: Instant) -> None:
        self._image_gc.ended(collected, now)

    def _round_ended(self, collected: ImagesCollected, now: Instant) -> None:
        event = self._image_gc.round_ended(self._node.view.settings.node_name, collected)
        if event is not None:
            self._reporter.event(event, now)

    # --- containers ---

    def _find_dead(self, now: Instant) -> Mapping[str, tuple[str, ...]]:
        """UID -> ids of dead containers beyond the node's maximum."""
        policy = self._node.view.settings.container_garbage_collection.policy
        dead, faults = dead_of_each(self._cache.statuses(), self._pod_table.wanted(), policy, now.wall)
        for report in collection_failures(self._node.view.settings.node_name, faults):
            self._reporter.event(report, now)
        return dead

    def _remove_dead(self, dead: Mapping[str, tuple[str, ...]]) -> None:
        for state in self._pod_table:
            if state.uid in dead:
                state.lifecycle.collect(dead[state.uid])
                self._pod_table.touch((state.uid,))

    def _described(self, dead: Mapping[str, tuple[str, ...]]) -> tuple[DeadContainer, ...]:
        views = self._cache.statuses()
        return tuple(
            DeadContainer(id=container.id, name=container.name, pod=state.name)
            for state in self._pod_table
            for container in (views[state.uid].containers if state.uid in dead else ())
            if container.id in dead[state.uid]
        )

    # --- requests ---

    def on_request(self, request: GarbageRequest, now: Instant) -> None:
        """Answered by one `GarbageCollected`."""
        report = GarbageReport(dry_run=request.dry_run)
        if not self._is_all_known():
            self._out.add(GarbageCollected(request.ticket, msgspec.structs.replace(report, errors=(NOT_YET,))))
            return
        dead = self._find_dead(now)
        waiting = _Request(request.ticket, msgspec.structs.replace(report, containers=self._described(dead)))
        if not request.dry_run:
            self._remove_dead(dead)

        def images_collected(collected: ImagesCollected, now: Instant) -> None:
            self._answered(
                waiting,
                msgspec.structs.replace(
                    waiting.report,
                    images=collected.images,
                    freed_bytes=collected.freed_bytes,
                    capacity_bytes=collected.capacity_bytes,
                    available_bytes=collected.available_bytes,
                    errors=(*waiting.report.errors, *([collected.error] if collected.error else [])),
                ),
            )

        self._ask_for_logs(waiting, now)
        self.collect_images(images_collected, now, all_unused=not request.dry_run, report=request.dry_run)

    def _out_to_logs(self, now: Instant, number: int = 0, *, dry_run: bool = False) -> None:
        known = {*self._pod_table.uids(), *self._cache.unseen}
        request = collect_logs(known, self._cache.statuses(), now.wall)
        self._out.to_node(msgspec.structs.replace(request, number=number, dry_run=dry_run))

    def _ask_for_logs(self, waiting: _Request, now: Instant) -> None:
        self._log_number += 1
        self._log_requests[self._log_number] = waiting
        if self._out.is_up(NODE_SLOT):
            self._out_to_logs(now, self._log_number, dry_run=waiting.report.dry_run)
        else:
            self.on_logs_collected(LogsCollected(number=self._log_number), now)

    def on_logs_collected(self, collected: LogsCollected, now: Instant) -> None:
        waiting = self._log_requests.pop(collected.number, None)
        if waiting is not None:
            errors = (*waiting.report.errors, *collected.failures)
            report = msgspec.structs.replace(waiting.report, directories=collected.paths, errors=errors)
            self._answered(waiting, report)

    def _answered(self, waiting: _Request, report: GarbageReport) -> None:
        waiting.report = report
        waiting.waits_for -= 1
        if not waiting.waits_for:
            self._out.add(GarbageCollected(waiting.ticket, report))

    def node_down(self, now: Instant) -> None:
        """Requests that the node worker has not answered have failed."""
        self._image_gc.node_down(now)
        for number in tuple(self._log_requests):
            self.on_logs_collected(LogsCollected(number=number), now)
