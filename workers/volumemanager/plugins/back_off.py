"""Growing pauses after mounts that failed, by pod and volume.

Mirrors nestedpendingoperations (pkg/volume/util) and pkg/util/goroutinemap/exponentialbackoff/exponential_backoff.go.
Different on purpose: the pause ends at once when what the volume is made of has changed, its manifest, or an object or
claim of the pod: somebody has mended it. A worker that is started anew knows of no pause.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ipc.k8s.api.v1.volume import Volume
from workers.sync.pod_snapshot import PodSnapshot

INITIAL_PAUSE_S: Final = 0.5
"""initialDurationBeforeRetry."""
LONGEST_PAUSE_S: Final = 122.0
"""maxDurationBeforeRetry, 2 minutes and 2 seconds."""
MAX_ENTRIES: Final = 4096
"""Most volumes whose failures are remembered; the longest unseen goes first."""


class Failure(msgspec.Struct, frozen=True):
    """Failure of a volume's last mount."""

    words: str
    pause_s: float
    failed_at: float
    """Wall seconds."""
    made_of: bytes
    """Digest of the manifest, objects and claims that it was tried with."""

    @property
    def retry_at(self) -> float:
        """Wall seconds."""
        return self.failed_at + self.pause_s


class MountBackOff:
    """The failures of one worker's volumes."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], Failure] = {}

    def waiting(self, of: PodSnapshot, volume: Volume, now_wall: float) -> Failure | None:
        """The failure for which the volume is not tried now (SafeToRetry). A clock that was set back ends the pause."""
        failure = self._failures.get(_key(of, volume))
        if failure is None or not failure.failed_at <= now_wall < failure.retry_at:
            return None
        return failure if failure.made_of == _digest(of, volume) else None

    def failed(self, of: PodSnapshot, volume: Volume, words: str, now_wall: float) -> Failure:
        """Note a failure: each pause is twice the one before (ExponentialBackoff.Update)."""
        before, made_of = self._failures.pop(_key(of, volume), None), _digest(of, volume)
        is_same = before is not None and before.made_of == made_of
        pause_s = min(2 * before.pause_s, LONGEST_PAUSE_S) if before is not None and is_same else INITIAL_PAUSE_S
        failure = Failure(words, pause_s, now_wall, made_of)
        self._failures[_key(of, volume)] = failure
        if len(self._failures) > MAX_ENTRIES:
            del self._failures[next(iter(self._failures))]
        return failure

    def succeeded(self, of: PodSnapshot, volume: Volume) -> None:
        """Forget the volume's failures."""
        self._failures.pop(_key(of, volume), None)

    def forget(self, uid: str) -> None:
        """Forget a pod that ends."""
        for key in [key for key in self._failures if key[0] == uid]:
            del self._failures[key]


def _key(of: PodSnapshot, volume: Volume) -> tuple[str, str]:
    return of.pod.metadata.uid, volume.name


def _digest(of: PodSnapshot, volume: Volume) -> bytes:
    """Taken only of volumes that have failed."""
    return hashlib.sha256(msgspec.json.encode((volume, of.objects), order="deterministic")).digest()
