"""Status manager: decides what the server has to be told of pods, and when (pkg/kubelet/status/status_manager.go).
Sans-I/O.

Pods as the server has them and as the master reports them go in; `due` says what to do for one pod. At most one request
of a pod is under way, so what changes meanwhile is told at once by the next one. There is no queue that could go stale:
what is due follows from the two copies, which is the reconciliation of a status that somebody else has changed, too.
That one has a pace, as upstream's batch: two nodes of one name would overwrite each other as fast as they may ask.
A status in which a container has left an end that is final is withheld: the server would refuse it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ipc.host.text.json_types import JsonObject, JsonValue
from ipc.k8s.api.v1.status import TERMINAL_PHASES, PodStatus
from ipc.k8s.patching.strategic_diff import two_way_patch
from ipc.k8s.patching.strategic_schema import StructSchema
from ipc.link.messages.api_server import PodChanged
from workers.cluster.node.nulls import without_nulls
from workers.cluster.pods.container_transitions import forbidden_transition
from workers.cluster.pods.known_pod import KnownPod
from workers.cluster.pods.wanted_status import plain_status, wanted_status

RETRY_S: Final = 10.0
"""After which a request that has failed is tried again, in seconds (syncPeriod)."""
RECONCILE_S: Final = 10.0
"""Shortest time from a patch to one that says the same again, in seconds (syncPeriod)."""
SETTLE_S: Final = 1.0
"""How long a change that nobody waits for may wait for others, in seconds."""
_PROMPT: Final = frozenset({"Ready"})
"""Conditions whose change others wait for."""


log = logging.getLogger(__name__)


class PatchStatus(msgspec.Struct, frozen=True):
    """Have the server merge that into the pod's status."""

    known: KnownPod
    status: JsonObject


class DeletePodFinally(msgspec.Struct, frozen=True):
    """Have the server forget the pod: nothing of it is left here."""

    known: KnownPod


Action = PatchStatus | DeletePodFinally


_Versions = tuple[str, JsonObject]
"""The server's version of a pod, and the status as it was true then."""


class _Entry:
    def __init__(self) -> None:
        self.known: KnownPod | None = None
        self.own: JsonObject | None = None
        """The status as it is; None before the first."""
        self.is_released = False
        """Nothing of the pod is left on this node."""
        self.is_busy = False
        self.is_lost = False
        """The server has answered that there is no such pod; true until it says otherwise."""
        self.since = 0.0
        """When the status began to differ, monotonic seconds."""
        self.not_before = 0.0
        """When the next request may be made, monotonic seconds."""
        self.asked: _Versions | None = None
        """Versions that the patch under way was made of."""
        self.reported_status: JsonObject | None = None
        """The status that the server has taken last, of whatever it has made since."""
        self.reported_at = 0.0
        """When that was, monotonic seconds."""
        self.unchanged_by: _Versions | None = None
        """Versions that the last patch was made of that has changed nothing."""
        self.withheld_for = ""
        """The container because of which the status is withheld."""


class StatusManager:
    """Both copies of every pod, by the server's UID."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._changed: dict[str, None] = {}
        """In the order in which they changed."""

    def take_changed(self) -> tuple[str, ...]:
        """UIDs of pods of which something has changed since the last time."""
        changed, self._changed = tuple(self._changed), {}
        return changed

    def uids(self) -> tuple[str, ...]:
        """Every pod that is known."""
        return tuple(self._entries)

    def known(self, uid: str) -> KnownPod | None:
        """The pod as the server has it."""
        entry = self._entries.get(uid)
        return None if entry is None else entry.known

    # --- what the server has -------------------------------------------------------------------------------------

    def replaced(self, pods: Iterable[KnownPod]) -> None:
        """Take these for all: the versions may be older than those known, when the server was restored."""
        there = {pod.uid: pod for pod in pods}
        for uid in [uid for uid in self._entries if uid not in there]:
            self.deleted(uid)
        for pod in there.values():
            self._know(pod)

    def changed(self, pod: KnownPod) -> None:
        """The server has another version. One that is older than what it has answered since says nothing."""
        known = self.known(pod.uid)
        if known is None or not pod.is_older_than(known):
            self._know(pod)

    def deleted(self, uid: str) -> None:
        """The server has it no longer."""
        entry = self._entries.get(uid)
        if entry is None:
            return
        entry.known = None
        if entry.own is None or entry.is_released:
            del self._entries[uid]

    def _know(self, pod: KnownPod) -> None:
        entry = self._entries.setdefault(pod.uid, _Entry())
        entry.known, entry.is_lost, entry.not_before = pod, False, 0.0
        self._changed[pod.uid] = None

    # --- what is true --------------------------------------------------------------------------------------------

    def report(self, uid: str, changed: PodChanged, now: float, *, is_static: bool = False) -> None:
        """The status of a pod is that now. One that nobody has observed since the agent began is older than that of the
        server, unless it is final."""
        if changed.is_observed or changed.status.phase in TERMINAL_PHASES:
            self.report_plain(uid, plain_status(changed.status, is_static=is_static), now)

    def report_plain(self, uid: str, status: JsonObject, now: float) -> None:
        """Likewise, as plain data."""
        entry = self._entries.setdefault(uid, _Entry())
        if entry.own == status and not entry.is_released:
            return
        entry.own, entry.is_released = status, False
        entry.since = entry.since or now
        self._changed[uid] = None

    def released(self, uid: str) -> None:
        """Nothing of the pod is left here."""
        entry = self._entries.setdefault(uid, _Entry())
        entry.is_released = True
        if entry.known is None:
            del self._entries[uid]
            return
        self._changed[uid] = None

    def is_released(self, uid: str) -> bool:
        """Whether nothing of a pod is left here that was."""
        entry = self._entries.get(uid)
        return entry is not None and entry.is_released

    def release_unknown(self, reported: Iterable[str]) -> None:
        """Take pods that the master has not reported by now for ones of which nothing is here."""
        there = set(reported)
        for uid, entry in self._entries.items():
            if uid not in there and entry.own is None:
                entry.is_released = True
                self._changed[uid] = None

    # --- what to do ----------------------------------------------------------------------------------------------

    def due(self, uid: str, now: float) -> tuple[Action | None, float]:
        """Decide what to do for that pod now; if nothing, in how many seconds to ask again (0.0: when it changes)."""
        entry = self._entries.get(uid)
        if entry is None or entry.known is None or entry.is_busy or entry.is_lost:
            return None, 0.0
        if entry.not_before > now:
            return None, entry.not_before - now
        patch, is_prompt = self._patch(entry, entry.known)
        is_last = entry.is_released and entry.known.is_deleted and not entry.known.is_mirror
        if patch and not (is_last and _is_reported(entry)):
            wait_s = _earliest(entry, is_prompt=is_prompt) - now
            if wait_s > 0.0:
                return None, wait_s
            entry.is_busy, entry.asked, entry.since = True, _versions(entry, entry.known), 0.0
            return PatchStatus(entry.known, patch), 0.0
        entry.since = 0.0
        if is_last:
            entry.is_busy = True
            return DeletePodFinally(entry.known), 0.0
        return None, 0.0

    @staticmethod
    def _patch(entry: _Entry, known: KnownPod) -> tuple[JsonObject, bool]:
        """The difference, and whether somebody waits for it."""
        if entry.own is None or entry.unchanged_by == _versions(entry, known):
            return {}, False
        server = known.status_value()
        wanted = wanted_status(server, entry.own)
        if _is_withheld(entry, known, server, wanted):
            return {}, False
        return status_patch(server, wanted), _is_prompt(server, wanted)

    def patched(self, uid: str, answer: KnownPod, now: float) -> None:
        """The server has taken the patch; the pod as it is there now. Where that is the version from before, the server
        keeps something of the status in another form: the same patch would change nothing again."""
        entry = self._ended(uid, 0.0)
        if entry is not None and entry.asked is not None:
            entry.reported_status, entry.reported_at = entry.asked[1], now
            if entry.asked[0] == answer.metadata.resource_version:
                entry.unchanged_by = entry.asked
        self.changed(answer)

    def lost(self, uid: str) -> None:
        """The server has no such pod, or another one of that name: whatever it watches will say so."""
        entry = self._ended(uid, 0.0)
        if entry is not None:
            entry.is_lost = True

    def failed(self, uid: str, now: float) -> None:
        """The request has failed otherwise: it is made again later."""
        self._ended(uid, now + RETRY_S)

    def _ended(self, uid: str, not_before: float) -> _Entry | None:
        entry = self._entries.get(uid)
        if entry is not None:
            entry.is_busy, entry.not_before = False, not_before
            self._changed[uid] = None
        return entry


def _versions(entry: _Entry, known: KnownPod) -> _Versions:
    return known.metadata.resource_version, entry.own or {}


def _is_reported(entry: _Entry) -> bool:
    """Whether the server has taken the status as it is: if it has another one now, that is somebody else's."""
    return entry.reported_status is not None and entry.own == entry.reported_status


def _earliest(entry: _Entry, *, is_prompt: bool) -> float:
    """When the server may be told of a difference, monotonic seconds."""
    if _is_reported(entry):
        return entry.reported_at + RECONCILE_S
    return 0.0 if is_prompt or entry.is_released else entry.since + SETTLE_S


def _is_withheld(entry: _Entry, known: KnownPod, server: JsonObject, wanted: JsonObject) -> bool:
    """Whether the server's status stays, as a container has left an end that is final. Said once (STAT-04)."""
    name = forbidden_transition(known, server, wanted)
    if name and name != entry.withheld_for:
        pod = f"{known.metadata.namespace}/{known.metadata.name}"
        why = f"terminated container {name} attempted illegal transition to non-terminated state"
        log.error("status update on pod %s aborted: %s", pod, why)
    entry.withheld_for = name
    return bool(name)


def _is_prompt(server: JsonObject, wanted: JsonObject) -> bool:
    """Whether a change is one that others wait for: the first status, the phase, readiness, a new generation."""
    if not server.get("startTime") or wanted.get("phase") in TERMINAL_PHASES:
        return True
    same = ("phase", "observedGeneration", "podIP")
    return any(server.get(name) != wanted.get(name) for name in same) or _ready(server) != _ready(wanted)


def _ready(status: JsonObject) -> list[str]:
    return [item.get("status", "") for item in status.get("conditions") or () if item["type"] in _PROMPT]


_STATUS: Final = StructSchema(PodStatus)


def status_patch(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> JsonObject:
    """Strategic merge patch that turns the one status into the other (component-helpers, PatchPodStatus); empty for
    none. A null is as good as nothing: servers tell either."""
    return two_way_patch(without_nulls(old), without_nulls(new), _STATUS)
