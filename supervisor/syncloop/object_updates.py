"""ConfigMaps and Secrets come, change and go: the pods that refer to one of them are synced at once, and no others.

That is what those wait for that have ended with CreateContainerConfigError or FailedMount; and whoever runs has its
volumes set up anew, which upstream does within a minute or so (pkg/kubelet/volumemanager, the pod's next sync).
"""

from __future__ import annotations

from collections.abc import Iterable

from ipc.host.clock import Instant
from ipc.messages.pod_worker import WorkType
from supervisor.podworkers.pod_lifecycle import PodLifecycle
from supervisor.protocol.manifests import ObjectsExpected, ObjectUpdate
from supervisor.syncloop.parts import LoopParts


class ObjectUpdates:
    """Handlers without a state of their own."""

    def __init__(self, parts: LoopParts) -> None:
        self._pod_table = parts.pod_table
        self._objects = parts.objects
        self._out = parts.out
        self._reporter = parts.reporter
        self._announcer = parts.announcer

    def on_object_update(self, update: ObjectUpdate, now: Instant) -> None:
        changed = self._objects.take(update)
        self._out.to_api(self._reporter.objects(update))
        self._sync(self._pod_table.referring_to(changed), now)

    def on_objects_expected(self, expected: ObjectsExpected, now: Instant) -> None:
        """Those that are expected no more and have not come are absent now."""
        answered, self._objects.expected = self._objects.expected - expected.keys, expected.keys
        self._sync(self._pod_table.referring_to([key for key in answered if key not in self._objects]), now)

    def on_sources_ready(self, now: Instant) -> None:
        """What is missing now does not exist: who could do without it goes on."""
        self._objects.complete = True
        self._sync(
            (
                lifecycle
                for lifecycle in self._pod_table
                if lifecycle.pod is not None
                and self._objects.misses_any(lifecycle.pod.metadata.namespace, lifecycle.references)
            ),
            now,
        )

    def _sync(self, pod_table: Iterable[PodLifecycle], now: Instant) -> None:
        """What containers have left to be read may be told now, also of those that have come to their end."""
        for lifecycle in pod_table:
            if lifecycle.status is not None:
                self._announcer.report(lifecycle, now)
            if lifecycle.phase is WorkType.SYNC:
                lifecycle.resync()
                self._pod_table.touch((lifecycle.uid,))
