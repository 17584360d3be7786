"""Handlers of ConfigMaps, Secrets and claims: when one changes, the pods that refer to it are synced at once, and no
others.

Pods that ended with CreateContainerConfigError or FailedMount wait for that; a running pod has its volumes set up anew,
which upstream does within a minute or so (pkg/kubelet/volumemanager, the pod's next sync).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ipc.host.clock import Instant
from ipc.k8s.podobjects.cluster_values import NO_VALUES
from ipc.link.messages.cluster import PodValuesStated
from ipc.link.messages.node_worker import VolumeDeleted
from ipc.link.messages.pod_worker import ObjectsRead, WorkType
from supervisor.desired.volume_updates import VolumeUpdates
from supervisor.managers.object_delivery import ObjectDelivery
from supervisor.managers.object_store import ObjectStore
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.podcontrol.tracking import PodTracking
from supervisor.pods.parts import KnownPods
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.events import BindingsRestored
from supervisor.protocol.source_updates import ObjectsExpected, ObjectUpdate, PodsIncomplete
from supervisor.record.status_manager import StatusManager


class ObjectUpdates(msgspec.Struct, frozen=True, eq=False):
    """Handlers without a state of their own."""

    _pod_table: PodTable
    _objects: ObjectStore
    _volumes: VolumeUpdates
    _known: KnownPods
    _delivery: ObjectDelivery
    _statuses: StatusManager
    _tracking: PodTracking
    _reporter: PodReporter
    _out: CommandBuffer

    def on_object_update(self, update: ObjectUpdate, now: Instant) -> None:
        self._take(self._volumes.take(update, now), now)

    def take_early(self, stated: PodValuesStated) -> bool:
        """Keep values of a pod that is still to come; False when the pod is here, and something may follow."""
        if stated.uid in self._pod_table or stated.values is None:
            return False
        self._known.of(stated.uid).cluster_values = stated.values
        return True

    def on_pod_values(self, stated: PodValuesStated, now: Instant) -> None:
        """A pod is synced when its files are others; variables are read when a container starts."""
        parts = self._known.of(stated.uid)
        before, parts.cluster_values = parts.cluster_values or NO_VALUES, stated.values
        if stated.values is None:
            self._known.tidy(stated.uid)
            return
        state = self._pod_table.get(stated.uid)
        if state is not None and not stated.values.same_files(before):
            self._sync((state,), now)

    def on_bindings_restored(self, restored: BindingsRestored, now: Instant) -> None:
        self._take(self._volumes.restore(restored.bindings, now), now)

    def on_volume_deleted(self, answer: VolumeDeleted, now: Instant) -> None:
        self._take(self._volumes.on_deleted(answer, now), now)

    def carry_out_due(self, now: Instant) -> None:
        """Do what is due of objects; called once a second. Pods that wait for sources which were not read yet do so for
        a while only: they are tried again."""
        self._pod_table.touch(self._delivery.take_early())
        self._take(self._volumes.retry_releases(now), now)

    def _take(self, update: ObjectUpdate, now: Instant) -> None:
        if not (update.stated or update.gone):
            return
        changed = self._objects.take(update)
        self._out.to_api(self._statuses.objects(update))
        self._sync(self._pod_table.referring_to(changed), now)

    def on_objects_expected(self, expected: ObjectsExpected, now: Instant) -> None:
        """Objects that are expected no more and have not come are absent now: pods that refer to them are synced."""
        answered = self._objects.expect(expected.keys)
        self._take(self._volumes.expect(expected.keys, now), now)
        self._sync(self._pod_table.referring_to([key for key in answered if key not in self._objects]), now)

    def on_pods_incomplete(self, reported: PodsIncomplete, now: Instant) -> None:
        """A sync that waits for what its pod refers to gets it when it was read; a pod whose sync has not waited so
        long is synced again."""
        for uid in self._completed(reported.uids):
            state = self._pod_table.get(uid)
            if state is None or state.lifecycle.phase is not WorkType.SYNC:
                continue
            if (flight := state.lifecycle.in_flight) is None:
                self._tracking.resync(state)
            else:
                objects = self._delivery.load_anew(state)
                self._out.send(flight.slot, ObjectsRead(uid=uid, generation=flight.generation, objects=objects))

    def _completed(self, incomplete: frozenset[str]) -> list[str]:
        """Note which pods are incomplete now. UIDs of those that are so no more, in order."""
        complete = sorted(uid for uid, parts in self._known.items() if parts.is_incomplete and uid not in incomplete)
        for uid in incomplete:
            self._known.of(uid).is_incomplete = True
        for uid in complete:
            self._known.of(uid).is_incomplete = False
            self._known.tidy(uid)
        return complete

    def sources_ready(self, now: Instant) -> None:
        """Objects that are missing now do not exist: pods that refer to them are synced, and may go on without."""
        self._objects.sources_ready()
        self._take(self._volumes.sources_ready(now), now)
        self._sync(
            (
                state
                for state in self._pod_table
                if state.pod is not None and self._objects.misses_any(state.pod.metadata.namespace, state.references)
            ),
            now,
        )

    def _sync(self, states: Iterable[PodRecord], now: Instant) -> None:
        """Report statuses anew, of pods at their end too: texts of containers may be readable now. Sync the others."""
        for state in states:
            if self._statuses.status(state.uid) is not None:
                self._reporter.report(state, now)
            if state.lifecycle.phase is WorkType.SYNC and not state.parts.is_incomplete:
                self._tracking.resync(state)
