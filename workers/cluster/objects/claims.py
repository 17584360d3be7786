"""Claims that pods of this node refer to, with the volumes that they are bound to: read by GET, as a node may not watch
them, until one is found that can be mounted (pkg/kubelet/volumemanager/populator).

Binding is the cluster's business, and so is the end of a volume: here nothing is bound, made or removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from ipc.host.text.safe_text import safe_line
from ipc.k8s.api.decode import decode_server_object
from ipc.k8s.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.api.v1.volume import Volume
from ipc.k8s.podobjects.config_objects import ObjectKey
from ipc.k8s.podobjects.pod_claims import PodClaim
from ipc.link.eventloop.tasks import BackgroundTasks, restarted
from workers.cluster.objects.claim_volume import about, claim_problem, owner_problem, pod_claim
from workers.cluster.objects.token_state import Attempts
from workers.kubeclient.errors import ApiError, ClusterError, check_name
from workers.kubeclient.protocol import Client
from workers.kubeclient.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES

log = logging.getLogger(__name__)


class ClaimReading(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a claim's newest reading."""

    mounted: PodClaim
    claim: PersistentVolumeClaim | None = None
    """None when it could not be read."""
    is_answer: bool = True
    """False when the server has not said anything: what it said before may still hold."""

    def of(self, pod: Pod, volume: Volume) -> PodClaim:
        """Mount of a pod for that volume."""
        problem = owner_problem(pod, self.claim, volume) if self.claim is not None else ""
        return PodClaim(problem=problem) if problem else self.mounted


UNREAD: Final = "failed to fetch PVC from API server: there is no answer yet"


class Claims:
    """Claims by key, each with the task that reads it until it can be mounted."""

    def __init__(self, client: Client, changed: Callable[[ObjectKey], None], tasks: BackgroundTasks) -> None:
        """``changed``: called with a claim of which something else is found than before."""
        self._client = client
        self._changed = changed
        self._tasks = tasks
        self._reading: dict[ObjectKey, asyncio.Task[None]] = {}
        self._found: dict[ObjectKey, ClaimReading] = {}
        self._tried: dict[ObjectKey, asyncio.Event] = {}

    def begin(self, key: ObjectKey) -> None:
        """A pod refers to that claim that did not before: it is read, also when it was for another pod, as it may be
        another one of its name."""
        if (reading := self._reading.pop(key, None)) is not None:
            reading.cancel()
        self._found.pop(key, None)
        self._tried.setdefault(key, asyncio.Event()).clear()
        self._reading[key] = self._spawn(key)

    def end(self, key: ObjectKey) -> None:
        """Nobody refers to it any more."""
        self._reading.pop(key).cancel()
        self._tried.pop(key).set()
        self._found.pop(key, None)

    def begin_anew(self) -> None:
        """Read every claim again: it may be bound to another volume, or to none."""
        for key, reading in self._reading.items():
            reading.cancel()
            self._reading[key] = self._spawn(key)

    def is_read(self, key: ObjectKey) -> bool:
        """Whether `read` returns at once."""
        return key not in self._tried or self._tried[key].is_set()

    async def read(self, key: ObjectKey) -> None:
        """Returns when the claim was asked for once."""
        if key in self._tried:
            await self._tried[key].wait()

    def find(self, key: ObjectKey) -> ClaimReading:
        """The newest of a claim; of one that was not read a problem."""
        words = f"{about(key.namespace, key.name)}: {UNREAD}"
        return self._found.get(key) or ClaimReading(mounted=PodClaim(problem=words), is_answer=False)

    def _spawn(self, key: ObjectKey) -> asyncio.Task[None]:
        name = f"reading of {key}"
        return self._tasks.spawn(restarted(lambda: self._read(key), name=name), name=name)

    async def _read(self, key: ObjectKey) -> None:
        attempts = Attempts()
        while True:
            found = await self._ask(key)
            before, self._found[key] = self._found.get(key), found
            self._tried[key].set()
            if before != found:
                self._changed(key)
            if not found.mounted.problem:
                return
            await asyncio.sleep(attempts.pause_s)
            attempts = attempts.failed()

    async def _ask(self, key: ObjectKey) -> ClaimReading:
        """The claim, then its volume."""
        begin, what, claim = about(key.namespace, key.name), "PVC", None
        try:
            path = PERSISTENT_VOLUME_CLAIMS.path(key.namespace, key.name)
            claim = decode_server_object(await self._client.request("GET", path), PersistentVolumeClaim)
            check_name(claim.metadata.name, key.name)
            if problem := claim_problem(claim):
                return ClaimReading(claim=claim, mounted=PodClaim(problem=f"{begin}: {problem}"))
            what = f"PV {claim.spec.volume_name}"
            answer = await self._client.request("GET", PERSISTENT_VOLUMES.path(name=claim.spec.volume_name))
            volume = decode_server_object(answer, PersistentVolume)
            check_name(volume.metadata.name, claim.spec.volume_name)
            return ClaimReading(claim=claim, mounted=pod_claim(claim, volume))
        except (ClusterError, ValueError) as error:
            words = f"{begin}: failed to fetch {what} from API server: {safe_line(str(error))}"
            is_answer = isinstance(error, ApiError) and error.is_not_found
            log.log(logging.DEBUG if is_answer else logging.WARNING, "%s", words)
            return ClaimReading(claim=claim, mounted=PodClaim(problem=words), is_answer=is_answer)
