"""Measurement of a run by its watch: times until pods became Ready, ages of statuses. Holds state, reads no clock."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ipc.host.text.json_types import Json
from ipc.k8s.api.v1.status import TERMINAL_PHASES
from ipc.link.messages.sync_error import SyncError
from ipc.link.shm.trace import Span
from supervisor.client.http import WatchEvent


class Percentiles(msgspec.Struct, frozen=True, rename="camel"):
    """Percentiles of durations in seconds."""

    p50: float
    p99: float
    samples: int


def percentiles(durations_s: Sequence[float]) -> Percentiles | None:
    """Percentiles by nearest rank; None without samples."""
    ordered = sorted(durations_s)
    if not ordered:
        return None
    p50, p99 = (ordered[math.ceil(len(ordered) * share) - 1] for share in (0.50, 0.99))
    return Percentiles(p50, p99, len(ordered))


WITHOUT_IMAGE: Final = frozenset(
    {
        SyncError.IMAGE_PULL,
        SyncError.IMAGE_PULL_BACK_OFF,
        SyncError.REGISTRY_UNAVAILABLE,
        SyncError.SIGNATURE_VALIDATION_FAILED,
        SyncError.IMAGE_NEVER_PULL,
        SyncError.INVALID_IMAGE_NAME,
    }
)
"""Reasons of containers that have no image: a pull that has failed once is not waited for."""


class Tracker:
    """All times are monotonic seconds of this host, on which agent and load test run."""

    def __init__(self, names: Iterable[str]) -> None:
        self._wanted = frozenset(names)
        self._applied_at: dict[str, float] = {}
        self._ready_at: dict[str, float] = {}
        self._killed_at: dict[str, float] = {}
        self._again_at: dict[str, float] = {}
        self._deleted_at: dict[str, float] = {}
        self._gone_at: dict[str, float] = {}
        self.names: dict[str, str] = {}
        """By UID, as seen."""
        self._observed_at: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        """Pods that will not become Ready any more, and why."""
        self.observe_to_status_s: list[float] = []
        """From the begin of the observation that a status tells of until that status was here; of pods not going."""

    def applied(self, names: Iterable[str], at: float) -> None:
        """The request that creates them was sent."""
        self._applied_at |= dict.fromkeys(names, at)

    def killed(self, name: str, at: float) -> None:
        """A process of its container gets SIGKILL."""
        self._killed_at[name] = at

    def deleted(self, name: str, at: float) -> None:
        """The request that deletes it was sent."""
        self._deleted_at.setdefault(name, at)

    def has_restarted(self, name: str) -> bool:
        """Whether it was Ready again with a container that was restarted."""
        return name in self._again_at

    def spans(self, process: str) -> Iterator[Span]:
        """Starts, restarts and stops, pod by pod, as a user has them: from the request to what the watch told."""
        uids = {name: uid for uid, name in self.names.items()}
        acts = (
            ("start", self._applied_at, self._ready_at),
            ("restart", self._killed_at, self._again_at),
            ("stop", self._deleted_at, self._gone_at),
        )
        for act, begun, ended in acts:
            for name in sorted(begun.keys() & ended.keys() & uids.keys()):
                yield Span(act, uids[name], begun[name], ended[name], 0.0, process, os.getpid())

    def see(self, event: WatchEvent, at: float) -> None:
        """One event of the watch arrived."""
        name = event.object.get("metadata", {}).get("name", "")
        if name not in self._wanted:
            return
        self.names.setdefault(event.object["metadata"].get("uid", ""), name)
        if event.type == "DELETED":
            self._gone_at[name] = at
            return
        # A status can change without a new look at the runtime: only the first one after a look counts. And while
        # pods are removed a look waits for Podman's locks: that would say nothing of how fast a change is seen.
        going = "deletionTimestamp" in event.object.get("metadata", {})
        if not going and event.observed_at > self._observed_at.get(name, 0.0):
            self._observed_at[name] = event.observed_at
            self.observe_to_status_s.append(at - event.observed_at)
        status = event.object.get("status", {})
        if _is_ready(status):
            self._ready_at.setdefault(name, at)
            if name in self._killed_at and _restarts(status):
                self._again_at.setdefault(name, at)
        elif status.get("phase") in TERMINAL_PHASES:
            self.failed[name] = f"{status['phase']}: {status.get('reason') or status.get('message') or 'no reason'}"
        elif waiting := _without_image(status):
            self.failed[name] = waiting

    @property
    def asked_for(self) -> frozenset[str]:
        """Names of the pods whose creation was requested, whatever became of them."""
        return frozenset(self._applied_at)

    @property
    def ready(self) -> int:
        """Number of pods that became Ready."""
        return len(self._ready_at)

    @property
    def settled(self) -> bool:
        """There is nothing more to wait for."""
        return len(self._ready_at.keys() | self.failed.keys()) == len(self._wanted)

    @property
    def gone(self) -> int:
        """Number of pods that are gone again."""
        return len(self._gone_at)

    def time_to_ready_s(self) -> list[float]:
        """Per pod, from the request to the status that says Ready."""
        return [at - self._applied_at[name] for name, at in self._ready_at.items() if name in self._applied_at]

    def all_ready_s(self) -> float | None:
        """From the first request to the last pod's Ready; None unless all of them are."""
        if len(self._ready_at) < len(self._wanted) or not self._applied_at:
            return None
        return max(self._ready_at.values()) - min(self._applied_at.values())

    def ready_at_s(self) -> list[float]:
        """When each pod became Ready, from the first request on, in order."""
        began = min(self._applied_at.values(), default=0.0)
        return sorted(at - began for at in self._ready_at.values())

    def not_ready(self) -> dict[str, str]:
        """The others, with what their statuses tell."""
        return {name: self.failed.get(name, "not Ready in time") for name in self._wanted - self._ready_at.keys()}


def _restarts(status: Json) -> int:
    return sum(container.get("restartCount", 0) for container in status.get("containerStatuses", ()))


def _without_image(status: Json) -> str:
    """Why a container has no image; empty while none lacks one."""
    waiting = (each.get("state", {}).get("waiting") or {} for each in status.get("containerStatuses") or ())
    return next((each["reason"] for each in waiting if each.get("reason") in WITHOUT_IMAGE), "")


def _is_ready(status: Json) -> bool:
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions", ()))
