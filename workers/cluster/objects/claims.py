"""Claims that pods of this node refer to, with the volumes that they are bound to: read when they are bound, by GET, as
a node may not watch them (pkg/kubelet/volumemanager/populator, getPVCExtractPV).

Binding is the cluster's business: an unbound claim is not told, so that nobody here finds a volume for it. So is the
end of a volume: whatever its policy says, for this node it is *Retain*.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec

from ipc.api.v1.persistent_volume import PersistentVolume, PersistentVolumeClaim
from ipc.host.tasks import BackgroundTasks, restarted
from ipc.kubecontainer.config_objects import ObjectKey, ObjectKind
from ipc.messages.cluster import ObjectStated
from workers.cluster.objects.object_watches import Tell, withdrawn
from workers.cluster.objects.token_state import Attempts
from workers.kubeclient.errors import ApiError, ClusterError
from workers.kubeclient.protocol import Client
from workers.kubeclient.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES

log = logging.getLogger(__name__)

BOUND: Final = "Bound"
_CLAIM: Final = msgspec.json.Decoder(PersistentVolumeClaim)
_VOLUME: Final = msgspec.json.Decoder(PersistentVolume)


class Claims:
    """Claims by key, each with the task that reads it until it is bound."""

    def __init__(self, client: Client, tell: Tell, tasks: BackgroundTasks) -> None:
        self._client = client
        self._tell = tell
        self._tasks = tasks
        self._reading: dict[ObjectKey, asyncio.Task[None]] = {}
        self._volumes: dict[ObjectKey, str] = {}
        self._tried: dict[ObjectKey, asyncio.Event] = {}

    def begin(self, key: ObjectKey) -> None:
        """A pod refers to that claim."""
        self._tried[key] = asyncio.Event()
        self._reading[key] = self._spawn(key)

    def end(self, key: ObjectKey) -> None:
        """Nobody refers to it any more."""
        self._reading.pop(key).cancel()
        del self._tried[key]
        self._tell(withdrawn(key))
        if volume := self._volumes.pop(key, ""):
            self._tell(withdrawn(ObjectKey(ObjectKind.PERSISTENT_VOLUME, "", volume)))

    def begin_anew(self) -> None:
        """Read every claim again: it may be bound to another volume, or to none."""
        for key, reading in self._reading.items():
            reading.cancel()
            self._reading[key] = self._spawn(key)

    async def read(self, key: ObjectKey) -> None:
        """Returns when the claim was asked for once."""
        if key in self._tried:
            await self._tried[key].wait()

    def _spawn(self, key: ObjectKey) -> asyncio.Task[None]:
        name = f"reading of {key}"
        return self._tasks.spawn(restarted(lambda: self._read(key), name=name), name=name)

    async def _read(self, key: ObjectKey) -> None:
        attempts = Attempts()
        while not await self._try(key):
            self._tried[key].set()
            await asyncio.sleep(attempts.pause_s)
            attempts = attempts.failed()
        self._tried[key].set()

    async def _try(self, key: ObjectKey) -> bool:
        """Whether claim and volume were told."""
        try:
            path = PERSISTENT_VOLUME_CLAIMS.path(key.namespace, key.name)
            claim = _CLAIM.decode(await self._client.request("GET", path))
            if claim.status.phase != BOUND or not claim.spec.volume_name:
                return False
            volume = await self._client.request("GET", PERSISTENT_VOLUMES.path(name=claim.spec.volume_name))
            found = _retained(_VOLUME.decode(volume))
        except ApiError as error:
            log.log(logging.DEBUG if error.is_not_found else logging.WARNING, "%s: %s", key, error)
            return False
        except (ClusterError, msgspec.DecodeError) as error:
            log.warning("%s: %s", key, error)
            return False
        self._volumes[key] = found.metadata.name
        self._tell(ObjectStated(persistent_volume=found))
        metadata = msgspec.structs.replace(claim.metadata, managed_fields=())
        self._tell(ObjectStated(persistent_volume_claim=msgspec.structs.replace(claim, metadata=metadata)))
        return True


def _retained(volume: PersistentVolume) -> PersistentVolume:
    return msgspec.structs.replace(
        volume,
        metadata=msgspec.structs.replace(volume.metadata, managed_fields=()),
        spec=msgspec.structs.replace(volume.spec, persistent_volume_reclaim_policy="Retain"),
    )
