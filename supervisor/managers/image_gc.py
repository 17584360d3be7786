"""Collections of images: when they are due, what is wanted meanwhile, and what follows from how they end.

Mirrors StartGarbageCollection (pkg/kubelet/kubelet.go): a round every five minutes, an event when two in a row have
failed. The node worker carries a collection out; when it dies the collection has failed, and nothing is lost, because
every collection looks anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ipc.host.clock import Instant
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.image_gc import ImageGcPolicy
from ipc.link.messages import event_reasons
from ipc.link.messages.base import EventReport, node_event
from ipc.link.messages.node_worker import CollectImages, ImagesCollected

IMAGE_GC_PERIOD_S: Final = 300.0
"""pkg/kubelet/kubelet.go, ImageGCPeriod."""
NO_NODE_WORKER: Final = "the node worker is not there"
NODE_WORKER_DIED: Final = "the node worker died meanwhile: what it has removed by then is removed"

Collected = Callable[[ImagesCollected, Instant], None]
"""Takes the end of a collection, also of one that has failed."""


class ImageGc:
    """The collections under way, and the rounds."""

    def __init__(self) -> None:
        self._due_at = 0.0
        """When the next round is due, monotonic seconds."""
        self._number = 0
        self._under_way: dict[int, Collected] = {}
        self._has_failed = False
        """The last round."""

    def take_due(self, now_mono: float) -> bool:
        """True once in every period, and not while a collection is under way."""
        if now_mono < self._due_at or self._under_way:
            return False
        self._due_at = now_mono + IMAGE_GC_PERIOD_S
        return True

    def begin(
        self,
        policy: ImageGcPolicy,
        wanted: Mapping[str, str],
        then: Collected,
        *,
        all_unused: bool = False,
        report: bool = False,
    ) -> CollectImages:
        """The message that begins a collection; ``then`` is called once, when it has ended."""
        self._number += 1
        self._under_way[self._number] = then
        return CollectImages(
            number=self._number, policy=policy, wanted=dict(wanted), all_unused=all_unused, report=report
        )

    def ended(self, collected: ImagesCollected, now: Instant) -> None:
        """The node worker's answer; one that nobody waits for is dropped."""
        then = self._under_way.pop(collected.number, None)
        if then is not None:
            then(collected, now)

    def node_down(self, now: Instant) -> None:
        """The node worker died: what it has not answered has failed."""
        for number in tuple(self._under_way):
            self.ended(ImagesCollected(number=number, error=NODE_WORKER_DIED), now)

    def round_ended(self, node_name: str, collected: ImagesCollected) -> EventReport | None:
        """The event of a round that has failed as the one before it."""
        repeated, self._has_failed = self._has_failed and bool(collected.error), bool(collected.error)
        return node_event(node_name, event_reasons.IMAGE_GC_FAILED, collected.error) if repeated else None


def wanted_images(pods: Iterable[tuple[str, Pod]]) -> dict[str, str]:
    """Images that pods need, containers' and volumes', as their specs name them -> the first of these pods."""
    found: dict[str, str] = {}
    for name, pod in pods:
        spec = pod.spec
        for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
            found.setdefault(container.image, name)
        for volume in spec.volumes:
            if volume.image is not None:
                found.setdefault(volume.image.reference, name)
    found.pop("", None)
    return found
