"""Carries out what the status manager finds due: patches of statuses, and the last DELETE of a pod."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, NoReturn

import msgspec

from ipc.host.clock import Clock
from ipc.host.text.json_types import UNDECODABLE
from ipc.link.eventloop.batch import BatchGate
from ipc.link.eventloop.tasks import BackgroundTasks
from workers.cluster.pods.known_pod import KnownPod, answered_pod
from workers.cluster.pods.status_manager import Action, DeletePodFinally, PatchStatus, StatusManager
from workers.kubeclient.errors import ApiError, ClusterError, Unreachable, check_name
from workers.kubeclient.protocol import STRATEGIC_MERGE_PATCH, Client
from workers.kubeclient.resources import PODS

MAX_REQUESTS: Final = 10
"""Most requests about pods that are under way."""
_LONG_S: Final = 3600.0

log = logging.getLogger(__name__)


class _Metadata(msgspec.Struct, frozen=True):
    uid: str = ""


class _Deleted(msgspec.Struct, frozen=True):
    """The pod as it was, or a Status."""

    kind: str
    metadata: _Metadata = _Metadata()


_DELETED: Final = msgspec.json.Decoder(_Deleted)


class StatusWriter:
    """Wakes when something is due."""

    def __init__(self, client: Client, statuses: StatusManager, clock: Clock, pods: BatchGate) -> None:
        """``pods`` come from the server: while they do, nothing is looked at."""
        self._pods = pods
        self._client = client
        self._statuses = statuses
        self._clock = clock
        self._wake = asyncio.Event()
        self._permits = asyncio.Semaphore(MAX_REQUESTS)
        self._tasks = BackgroundTasks()
        self._later: dict[str, float] = {}
        """UID to when to look again, monotonic seconds."""

    def wake(self) -> None:
        """Something may be due."""
        self._wake.set()

    async def run(self) -> NoReturn:
        """Write statuses to the server for ever."""
        try:
            while True:
                await self._pods.over()
                wait_s = self._begin_due()
                try:
                    async with asyncio.timeout(wait_s):
                        await self._wake.wait()
                except TimeoutError:
                    continue
                self._wake.clear()
        finally:
            self._tasks.cancel()

    def _begin_due(self) -> float:
        """Begin what is due; seconds until the next look."""
        now = self._clock.now().mono
        late = [uid for uid, at in self._later.items() if at <= now]
        for uid in (*self._statuses.take_changed(), *late):
            self._later.pop(uid, None)
            action, again_s = self._statuses.due(uid, now)
            if action is not None:
                self._tasks.spawn(self._carry_out(uid, action), name="request about a pod")
            elif again_s > 0.0:
                self._later[uid] = now + again_s
        return max(min(self._later.values(), default=now + _LONG_S) - now, 0.0)

    async def _carry_out(self, uid: str, action: Action) -> None:
        answer: KnownPod | None = None
        try:
            async with self._permits:
                answer = await self._ask(action)
        except ApiError as error:
            if error.is_not_found or (error.is_conflict and isinstance(action, DeletePodFinally)):
                self._statuses.lost(uid)
            else:
                self._failed(uid, action, error)
        except (ClusterError, ValueError) as error:
            self._failed(uid, action, error)
        else:
            if answer is None:
                self._statuses.lost(uid)
            else:
                self._statuses.patched(uid, answer, self._clock.now().mono)
        self.wake()

    def _failed(self, uid: str, action: Action, error: Exception) -> None:
        metadata = action.known.metadata
        log.warning("%s of pod %s/%s: %s", type(action).__name__, metadata.namespace, metadata.name, error)
        self._statuses.failed(uid, self._clock.now().mono)

    async def _ask(self, action: Action) -> KnownPod | None:
        """The pod as it is then; None after its last DELETE. Raises ClusterError, and ValueError for another answer."""
        metadata = action.known.metadata
        match action:
            case PatchStatus(status=status):
                body = {"metadata": {"uid": metadata.uid}, "status": status}
                answer = await self._client.request(
                    "PATCH",
                    PODS.path(metadata.namespace, metadata.name, "status"),
                    body=msgspec.json.encode(body),
                    content_type=STRATEGIC_MERGE_PATCH,
                )
                return answered_pod(answer, metadata.uid)
            case DeletePodFinally():
                await delete_now(self._client, metadata.namespace, metadata.name, metadata.uid)
                return None


async def delete_now(client: Client, namespace: str, name: str, uid: str) -> None:
    """Have the server forget a pod, if it still is the one of that UID. Raises ClusterError; Unreachable, too, for an
    answer that does not say so."""
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": uid},
    }
    path = PODS.path(namespace, name)
    answer = await client.request("DELETE", path, body=msgspec.json.encode(options))
    try:
        reported = _DELETED.decode(answer)
        if reported.kind != "Status":
            check_name(reported.metadata.uid, uid)
    except UNDECODABLE as error:
        raise Unreachable(f"DELETE {path}: the answer is no pod: {error}") from None
