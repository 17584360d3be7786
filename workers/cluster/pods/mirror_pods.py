"""Keeps the server's mirrors like the static pods of this node: made, replaced when they differ, taken away. What
happens to a mirror never happens to its pod."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, NoReturn

from ipc.host.clock import Clock
from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.api_server import PodChanged
from workers.cluster.node.types import decode_node
from workers.cluster.pods.known_pod import KnownPod, decode_known_pod
from workers.cluster.pods.mirror_pod import STATIC_SOURCES, is_of_earlier_life, mirror_name, mirror_pod, mirrors
from workers.cluster.pods.status_manager import StatusManager
from workers.cluster.pods.status_writer import delete_now
from workers.kubeclient.errors import ApiError, ClusterError, check_name
from workers.kubeclient.protocol import Client
from workers.kubeclient.resources import NODES, PODS

RETRY_S: Final = 10.0
"""After which a mirror that the server has refused is tried again, in seconds."""

log = logging.getLogger(__name__)


class MirrorPods:
    """Static pods of this node beside their mirrors."""

    def __init__(self, client: Client, node_name: str, statuses: StatusManager, clock: Clock) -> None:
        self._client = client
        self._node_name = node_name
        self._statuses = statuses
        self._clock = clock
        self._static: dict[str, PodChanged] = {}
        """By their own UID."""
        self._known: dict[tuple[str, str], KnownPod] = {}
        """The server's mirrors by namespace and name."""
        self._keys: dict[str, tuple[str, str]] = {}
        """Namespaces and names of the server's mirrors by UID."""
        self._is_listed = self._is_settled = False
        self._wake = asyncio.Event()
        self._reported: dict[str, str] = {}
        """Words that were said of a mirror last, by UID of its static pod; by its own where there is none."""

    # --- the server (Mirrors) ------------------------------------------------------------------------------------

    def known(self, uid: str, pod: KnownPod | None) -> None:
        """The server has that mirror; None: no longer."""
        if pod is None:
            key = self._keys.pop(uid, ("", ""))
            if (there := self._known.get(key)) is not None and there.uid == uid:  # else there is another one by now
                del self._known[key]
            self._statuses.released(uid)
        else:
            self._note(pod)
            self._report(pod)
        self._wake.set()

    def _note(self, pod: KnownPod) -> None:
        self._keys[pod.uid] = pod.metadata.namespace, pod.metadata.name
        self._known[self._keys[pod.uid]] = pod

    def listed(self) -> None:
        """All mirrors that the server has are known."""
        self._is_listed = True
        self._wake.set()

    # --- the master ----------------------------------------------------------------------------------------------

    def report(self, changed: PodChanged) -> bool:
        """A pod in the feed; False for one that is no static pod."""
        if changed.source not in STATIC_SOURCES:
            return False
        uid = changed.pod.metadata.uid
        before, self._static[uid] = self._static.get(uid), changed
        if (known := self._known.get(self._key(changed.pod))) is not None:
            self._report(known)
        if before is None or before.pod is not changed.pod or before.status.phase != changed.status.phase:
            self._wake.set()
        return True

    def gone(self, uid: str) -> bool:
        """Nothing of a pod is left here; False for one that is no static pod."""
        if self._static.pop(uid, None) is None:
            return False
        self._reported.pop(uid, None)
        self._wake.set()
        return True

    def sources_ready(self) -> None:
        """Every static pod is in the feed: a mirror of none is an orphan."""
        if not self._is_settled:
            self._is_settled = True
            self._wake.set()

    def name_of(self, uid: str) -> str:
        """Name in the cluster of a static pod; empty for another pod."""
        changed = self._static.get(uid)
        return "" if changed is None else mirror_name(changed.pod.metadata.name, self._node_name)

    def _key(self, pod: Pod) -> tuple[str, str]:
        return pod.metadata.namespace, mirror_name(pod.metadata.name, self._node_name)

    def _report(self, known: KnownPod) -> None:
        """The status of the static pod is that of its mirror."""
        key = known.metadata.namespace, known.metadata.name
        static = next((each for each in self._static.values() if self._key(each.pod) == key), None)
        if static is not None and mirrors(known, static.pod):
            self._statuses.report(known.uid, static, self._clock.now().mono, is_static=True)

    # --- what to do ----------------------------------------------------------------------------------------------

    async def run(self) -> NoReturn:
        """Bring the server's mirrors about, for ever."""
        while True:
            self._wake.clear()
            has_failed = await self._settle() if self._is_listed else False
            try:
                async with asyncio.timeout(RETRY_S if has_failed else None):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _settle(self) -> bool:
        """Carry out all that differs; whether something has failed."""
        has_failed = False
        for uid, changed in list(self._static.items()):
            if not changed.deletion_timestamp:
                has_failed |= await self._has_failed(uid, self._key(changed.pod), self._keep(changed))
        if self._is_settled:
            wanted = {self._key(changed.pod) for changed in self._static.values()}
            for key, known in list(self._known.items()):
                if key not in wanted:
                    has_failed |= await self._has_failed(known.uid, key, self._delete(known))
        return has_failed

    async def _has_failed(self, uid: str, key: tuple[str, str], act: Awaitable[None]) -> bool:
        """Carry it out; a failure, or an answer that is none, is told, of the static pod or the mirror of that UID."""
        try:
            await act
        except (ClusterError, ValueError) as error:
            self._tell(uid, f"mirror {'/'.join(key)}: {error}")
            return True
        self._reported.pop(uid, None)
        return False

    async def _keep(self, changed: PodChanged) -> None:
        """A mirror like the pod (pkg/kubelet/kubelet.go, tryReconcileMirrorPods)."""
        pod = changed.pod
        known = self._known.get(self._key(pod))
        if known is not None and _stands(known, changed):
            return
        if known is not None:
            await self._delete(known)
        node = await self._client.request("GET", NODES.path(name=self._node_name))
        uid = decode_node(node, self._node_name).metadata.uid
        try:
            made = await self._client.request(
                "POST", PODS.path(pod.metadata.namespace), body=mirror_pod(pod, self._node_name, uid)
            )
        except ApiError as error:
            if not error.already_exists:
                raise
            known = await self._read(self._key(pod))
            if not _stands(known, changed):
                raise
        else:
            known = _of_name(self._key(pod), made)
        self._statuses.changed(known)
        self._report(known)  # that it is there the watch says: it may have been deleted by now

    async def _read(self, key: tuple[str, str]) -> KnownPod:
        """Pod of that name. A mirror is known from then on, and replaced the next time if need be."""
        found = _of_name(key, await self._client.request("GET", PODS.path(*key)))
        if found.is_mirror:
            self._note(found)
        return found

    async def _delete(self, known: KnownPod) -> None:
        """Take a mirror away; one that is gone, or another one, is none of our business."""
        try:
            await delete_now(self._client, known.metadata.namespace, known.metadata.name, known.uid)
        except ApiError as error:
            if not (error.is_not_found or error.is_conflict or error.is_forbidden):
                raise
        self.known(known.uid, None)

    def _tell(self, uid: str, words: str) -> None:
        """Once for the same words."""
        if self._reported.get(uid) != words:
            self._reported[uid] = words
            log.warning("%s", words)


def _of_name(key: tuple[str, str], answer: bytes) -> KnownPod:
    """The pod of an answer. Raises ValueError for another one, or none."""
    found = decode_known_pod(answer)
    check_name(f"{found.metadata.namespace}/{found.metadata.name}", "/".join(key))
    return found


def _stands(known: KnownPod, changed: PodChanged) -> bool:
    """Whether that mirror is as good as a new one."""
    has_ended = changed.is_observed and is_of_earlier_life(known, changed.status.phase)
    return mirrors(known, changed.pod) and not known.is_deleted and not has_ended
