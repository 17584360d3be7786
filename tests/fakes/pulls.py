"""Everything between an image manager and the runtime in one process: the real parts, without the links between."""

from __future__ import annotations

from collections.abc import Callable

from ipc.host.clock import Clock
from ipc.k8s.podobjects.registry_login import Pull
from ipc.link.messages.base import PullEnded, PullProgress
from ipc.link.messages.node_worker import CancelPull, StartPull
from ipc.link.messages.pod_worker import AbandonPull, PullImage
from supervisor.managers.image_pulls import ImagePulls, PullLimits
from supervisor.processes.worker_pool import FIRST_POD_SLOT
from supervisor.protocol.commands import Send
from workers.images.image_records import ImageRecords
from workers.images.pull_records import PullRecords
from workers.images.pull_requests import PullRequests
from workers.images.puller import ImagePuller
from workers.kubecontainer.runtime import Runtime

EVERYBODY = PullRecords("")
SERIAL = PullLimits(parallel=1, per_s=0, burst=1)


class LocalPulls:
    """One pod worker's wishes, the master's arbiter, the node worker's puller."""

    def __init__(
        self, runtime: Runtime, clock: Clock, limits: PullLimits = SERIAL, rights: PullRecords = EVERYBODY
    ) -> None:
        self._clock = clock
        self._requests = PullRequests(self._to_master)
        self._arbiter = ImagePulls(limits)
        self._arbiter.node_up(0.0)
        self._puller = ImagePuller(runtime, clock, rights, ImageRecords("", clock), self._from_node)

    async def pull(self, uid: str, what: Pull, hear: Callable[[str], None]) -> PullEnded:
        """Pull as the image manager of a worker does."""
        return await self._requests.pull(uid, what, hear)

    async def _to_master(self, request: PullImage | AbandonPull) -> None:
        decide = self._arbiter.wanted if isinstance(request, PullImage) else self._arbiter.abandoned
        await self._carry_out(decide(FIRST_POD_SLOT, request, self._clock.now().mono))  # type: ignore[arg-type]

    async def _from_node(self, report: PullProgress | PullEnded) -> None:
        if isinstance(report, PullProgress):
            await self._carry_out(self._arbiter.progressed(report))
        else:
            await self._carry_out(self._arbiter.ended(report, self._clock.now().mono))

    async def _carry_out(self, commands: list[Send]) -> None:
        for command in commands:
            match command.message:
                case StartPull():
                    await self._puller.start(command.message.pull)
                case CancelPull():
                    self._puller.cancel(command.message.pull)
                case PullProgress():
                    self._requests.progressed(command.message)
                case PullEnded():
                    self._requests.ended(command.message)
                case _:
                    raise AssertionError(command)
