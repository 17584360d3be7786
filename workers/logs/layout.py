"""Where container logs lie, and when they go.

``<pod_logs_dir>/<namespace>_<pod>_<uid>/<container>/<attempt>.log``, as pkg/kubelet/kuberuntime/helpers.go has it
(BuildPodLogsDirectory, BuildContainerLogsDirectory). Podman writes them; they outlive their container: the newest two
attempts of each are kept for `logs --previous`, and more when more dead containers are.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Final

from ipc.host.private_directories import make_private

KEPT_ATTEMPTS: Final = 2
"""How many attempts of one container keep their log at least."""

MAX_INT64: Final = 2**63 - 1
"""Largest number that calcRestartCountByLogDir counts to (pkg/kubelet/kuberuntime/kuberuntime_container.go)."""

SUBJECT: Final = "logs"
"""The subject of a pod's thread that works in its log directory."""
MAX_DIRECTORIES: Final = 128
"""Most paths that are kept: a sync needs its pod's several times."""
START_ERROR_SUFFIX: Final = ".start-error"
"""Suffix of the file beside ``<attempt>.log`` with the error of a failed start."""

_ATTEMPT_FILE: Final = re.compile(r"([0-9]+)\.(log|start-error)(\..*)?")


_POD_DIRECTORY: Final = re.compile(r"[a-z0-9-]+_[a-z0-9.-]+_(?P<uid>[^/]+)")


@functools.lru_cache(maxsize=MAX_DIRECTORIES)
def pod_directory(root: str, namespace: str, name: str, uid: str) -> Path:
    return Path(root, f"{namespace}_{name}_{uid}")


def uid_of(directory_name: str) -> str:
    """Pod UID in the name of a log directory; empty for another name."""
    match = _POD_DIRECTORY.fullmatch(directory_name)
    return match["uid"] if match is not None else ""


def log_file(directory: Path, container: str, attempt: int) -> Path:
    return directory.joinpath(container, f"{attempt}.log")


def monitor_pid_file(directory: Path, attempt: int) -> Path:
    """Where the monitor of a sandbox's infra container writes its pid: by this path its command line is known as ours.

    No container's name has an underscore.
    """
    return directory / f"infra_{attempt}.pid"


def attempt_of(file_name: str) -> int | None:
    """Attempt of a log file, also of a rotated one; None for another file."""
    match = _ATTEMPT_FILE.fullmatch(file_name)
    return int(match[1]) if match else None


def restart_count_by_log_dir(file_names: Iterable[str]) -> int:
    """Next attempt when no container shows the last one any more (calcRestartCountByLogDir). A number without a next
    one in 64 bits does not count."""
    attempts = (attempt_of(name) for name in file_names)
    return max((a for a in attempts if a is not None and a < MAX_INT64), default=-1) + 1


def read_restart_count(directory: Path, container: str) -> int:
    """`restart_count_by_log_dir` of what is there; 0 without a directory. Raises OSError."""
    return restart_count_by_log_dir(_file_names(directory / container))


def newest_attempt(directory: Path, container: str) -> int:
    """The last one that has left something; -1 when none has. Raises OSError."""
    return read_restart_count(directory, container) - 1


def ensure_directory(file: Path) -> None:
    """Make the directory that Podman will open the log in. Raises OSError."""
    make_private(file.parent)


def kept_attempts(max_dead: int) -> int | None:
    """How many attempts keep their log when so many dead containers of one name are kept; None when all are, which is
    what a negative number means."""
    return None if max_dead < 0 else max(KEPT_ATTEMPTS, max_dead + 1)


def prune(
    directory: Path, container: str, newest_attempt: int, kept: int | None, there: Set[int] = frozenset()
) -> None:
    """Remove what belongs to attempts older than the ``kept`` ones: the newest, and those before it that have left
    something. None keeps all. What is ``there``, of attempts whose container exists, stays: without the mark of a
    failed start it would be started again. Raises OSError."""
    if kept is None or newest_attempt < kept:
        return
    attempts = {name: attempt_of(name) for name in _file_names(directory / container)}
    older = sorted({attempt for attempt in attempts.values() if attempt is not None and attempt < newest_attempt})
    too_old = older[: 1 - kept]
    for name, attempt in attempts.items():
        if attempt in too_old and attempt not in there:
            (directory / container / name).unlink(missing_ok=True)


def begin_attempt(directory: Path, container: str, attempt: int, kept: int | None, there: Set[int]) -> int:
    """Make the directory for the log of that attempt, or of a later one where logs show one, and `prune`; the attempt.
    Raises OSError. Waits for the file system."""
    attempt = max(attempt, read_restart_count(directory, container))
    ensure_directory(log_file(directory, container, attempt))
    prune(directory, container, attempt, kept, there)
    return attempt


def remove(directory: Path) -> None:
    """Remove everything of a pod that is gone. Raises OSError; not for a name too long to ever have been there."""
    if os.path.lexists(directory):
        shutil.rmtree(directory)


def _file_names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
