"""Images of the node: pulls for all its pods, and the collection of images that nobody uses (pkg/kubelet/images)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ipc.host.clock import Clock
from ipc.messages.node_worker import NodeWorkerReport
from ipc.wire.boot import WorkerSettings
from workers.images.collector import ImageCollector, NodeView
from workers.images.image_records import ImageRecords
from workers.images.provider_logins import ProviderLogins
from workers.images.pull_records import PullRecords
from workers.images.puller import ImagePuller
from workers.kubecontainer.image_service import ImageUser
from workers.kubecontainer.runtime import InspectedContainer, Runtime


class NodeImages:
    """The puller and the collector, which share records of pulls and of use."""

    def __init__(
        self,
        settings: WorkerSettings,
        runtime: Runtime,
        clock: Clock,
        containers: Callable[[], Iterable[InspectedContainer]],
        send: Callable[[NodeWorkerReport], Awaitable[None]],
        of_another_store: Callable[[], Iterable[ImageUser]] = tuple,
    ) -> None:
        """``containers``: those of this agent, as they were inspected last. ``of_another_store``: as of `NodeView`."""
        pull_records = PullRecords(settings.pulled_images_dir)
        records = ImageRecords(settings.image_records_file, clock)
        self._providers = ProviderLogins(settings.credential_providers, clock)
        self.puller = ImagePuller(runtime, clock, pull_records, records, send, self._providers.find)
        view = NodeView(containers, lambda: self.puller.references, of_another_store)
        self.collector = ImageCollector(runtime, clock, records, pull_records, view, settings.node_name, send)

    async def close(self) -> None:
        """End pulls under way, and programs that were asked for logins."""
        await self.puller.close()
        await self._providers.close()
