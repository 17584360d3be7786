"""Restart counts of containers that were removed from the runtime by another client, as their logs show them.

An agent that was there counts on. The next one would begin at what is left, and a restart count would fall; but logs
outlive their containers (`workers.logs.layout`), so what they tell when the node worker is born is believed where it is
more. The kubelet asks them too, but only when it starts the next container (calcRestartCountByLogDir); until then its
API server remembers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

import msgspec

from ipc.k8s.kubecontainer.pod_status import RuntimePodStatus
from workers.logs import layout


class Logged(msgspec.Struct, frozen=True):
    """One pod's log directory as it was found."""

    directory: Path
    attempts: dict[str, int]
    """Container -> the newest attempt that has left something."""


class LostAttempts:
    """Newest attempts that have left logs, read once and again only for pods that lack them in the runtime."""

    def __init__(self, pod_logs_dir: str) -> None:
        """Reads the whole directory: two directories for a pod, some 15 µs. Raises OSError."""
        self._logged = dict(_read(Path(pod_logs_dir)))

    @property
    def uids(self) -> Set[str]:
        """Uids of pods that may have lost attempts."""
        return self._logged.keys()

    def lacks(self, status: RuntimePodStatus) -> bool:
        """Whether attempts that have left logs are not in the status: only then `of` reads anything."""
        logged = self._logged.get(status.uid)
        return logged is not None and bool(_unseen(logged.attempts, status))

    def of(self, status: RuntimePodStatus) -> dict[str, int]:
        """Container -> its newest attempt, for those that were removed. Raises OSError."""
        logged = self._logged.get(status.uid)
        if logged is None:
            return {}
        for name in _unseen(logged.attempts, status):
            logged.attempts[name] = layout.newest_attempt(logged.directory, name)
        return _unseen(logged.attempts, status)


def _unseen(attempts: Mapping[str, int], status: RuntimePodStatus) -> dict[str, int]:
    seen = {c.name: c.attempt for c in reversed(status.containers)}
    return {name: attempt for name, attempt in attempts.items() if attempt > seen.get(name, -1)}


def _read(root: Path) -> Iterator[tuple[str, Logged]]:
    try:
        names = os.listdir(root)
    except FileNotFoundError:
        return
    for name in names:
        if (uid := layout.uid_of(name)) and (attempts := _attempts(os.path.join(root, name))):
            yield uid, Logged(root / name, attempts)


def _attempts(directory: str) -> dict[str, int]:
    """Newest attempt by container; none of a directory that is removed meanwhile, or is not the agent's."""
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
        parent = Path(directory)
        return {name: newest for name in names if (newest := layout.newest_attempt(parent, name)) >= 0}
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
