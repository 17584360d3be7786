"""Termination message of a container: a file for that purpose, or the end of its log.

Mirrors makeMounts, getTerminationMessage and readLastStringFromContainerLogs
(pkg/kubelet/kuberuntime/kuberuntime_container.go). Different on purpose: the file is named after the attempt instead
of at random, so that the labels of a container are enough to find it again.

The file belongs to the container: whatever it makes of it, reading neither waits nor leads anywhere else nor fails.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.host.private_directories import make_private
from ipc.host.regular_files import opened_regular_file
from ipc.host.text.safe_text import clipped, clipped_end
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from workers.fs.regular_file import read_tail, regular_file
from workers.kubecontainer.labels import read_container
from workers.kubecontainer.runtime import InspectedContainer
from workers.logs import layout
from workers.logs.cri_format import LogRenderer
from workers.logs.rotated_names import COMPRESSED, rotated_of, split_unused

FALLBACK_TO_LOGS_ON_ERROR: Final = "FallbackToLogsOnError"

MAX_MESSAGE_BYTES: Final = 4096
"""Most that is read of the file, from its end (pkg/kubelet/container/runtime.go,
MaxContainerTerminationMessageLength, as the two below)."""
MAX_LOG_LINES: Final = 80
"""Most lines of a log that stand for the file."""
MAX_LOG_BYTES: Final = 2048
"""Most that is shown of these lines, in bytes, from their end."""
MAX_POD_BYTES: Final = 12 * 1024
"""Longest messages of one pod together, in bytes (MaxPodTerminationMessageLogLength). The status divides it by the
containers of the manifest; here it is divided by those that were seen, which are no more, so that an observation stays
small."""
FILE_MODE: Final = 0o666
"""The container may run as any user."""

_LOG_TAIL_BYTES: Final = 32 * 1024
"""Read of a log, in bytes: MAX_LOG_LINES entries that show less than MAX_LOG_BYTES, and one of conmon's largest."""
_FILE: Final = re.compile(r"(?P<container>[^.]+)\.(?P<attempt>\d+)\.termination-log")


def termination_log(pods_dir: str, uid: str, container: str, attempt: int) -> Path:
    """The file of one attempt, on the host: in the pod's directory, since one of the container's own would be two more
    that each start makes. No container's name has a dot."""
    return Path(pods_dir, uid, f"{container}.{attempt}.termination-log")


def termination_logs(directory: Path, container: str) -> list[str]:
    """Names of the files of every attempt in a pod's directory; none without that. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        found = map(_FILE.fullmatch, os.listdir(directory))
        return [match[0] for match in found if match and match["container"] == container]
    return []


def make_termination_log(file: Path, attempt: int) -> None:
    """Make an empty file for the container to write, and remove those of attempts that no status shows any more.

    Raises OSError.
    """
    make_private(file.parent)
    with opened_regular_file(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, FILE_MODE) as fd:
        os.fchmod(fd, FILE_MODE)
    if attempt >= layout.KEPT_ATTEMPTS:
        _remove_older(file, attempt - layout.KEPT_ATTEMPTS)


def _remove_older(file: Path, newest_attempt: int) -> None:
    """Remove the files of that attempt of the container, and of those before it. Raises OSError."""
    container = file.name.partition(".")[0]
    for name in termination_logs(file.parent, container):
        if int(name.split(".")[1]) <= newest_attempt:
            file.with_name(name).unlink(missing_ok=True)


def read_termination_messages(
    ended: Mapping[str, InspectedContainer], pods_dir: str, pod_logs_dir: str
) -> dict[str, str]:
    """Termination messages by id."""
    return {id: read_termination_message(found, pods_dir, pod_logs_dir) for id, found in ended.items()}


def unreadable(error: OSError) -> str:
    """The message of containers whose directory does not answer."""
    return f"Error on reading termination message: {_words(error)}"


def read_termination_message(found: InspectedContainer, pods_dir: str, pod_logs_dir: str) -> str:
    """Termination message of a container that has ended, by its labels; empty when there is none."""
    own = read_container(found.labels)
    message, is_readable = "", True
    if pods_dir and own.termination_message_path:
        file = termination_log(pods_dir, own.pod_uid, own.name, own.attempt)
        message, is_readable = _read_file(Path(pods_dir), file)
    falls_back = own.termination_message_policy == FALLBACK_TO_LOGS_ON_ERROR and found.exit_code != 0
    if message or not is_readable or not falls_back:
        return message
    return _read_log(Path(pod_logs_dir), Path(found.log_path))


def crash_trace(tail: bytes, is_whole: bool) -> str:
    """Text of the last lines of a log. ``tail`` is its end, and begins in the middle of a line unless it is whole."""
    lines = tail.split(b"\n")
    complete = lines if is_whole else lines[1:]
    shown = LogRenderer(timestamps=False).render([line for line in complete if line][-MAX_LOG_LINES:])
    return clipped_end(shown, MAX_LOG_BYTES)


def with_termination_messages(status: RuntimePodStatus, messages: Mapping[str, str]) -> RuntimePodStatus:
    """The status with termination messages by container id. Only the newest two containers of a name show in any
    status."""
    if not messages:
        return status
    by_name = [list(of) for _, of in itertools.groupby(status.containers, key=lambda container: container.name)]
    max_bytes = MAX_POD_BYTES // max(1, len(by_name))
    containers = (
        _reported(container, messages, max_bytes) if rank < layout.KEPT_ATTEMPTS else container
        for of_a_name in by_name
        for rank, container in enumerate(of_a_name)
    )
    return msgspec.structs.replace(status, containers=tuple(containers))


def _reported(container: RuntimeContainerStatus, messages: Mapping[str, str], max_bytes: int) -> RuntimeContainerStatus:
    """Cut at its end, as normalizeStatus does (pkg/kubelet/status/status_manager.go)."""
    message = messages.get(container.id, "")
    if not message or container.state is not ContainerState.EXITED:
        return container
    reported = clipped(message, max_bytes)
    return msgspec.structs.replace(
        container, message=reported, message_cut=reported != message or _fills_its_room(message)
    )


def _fills_its_room(message: str) -> bool:
    """As long as what is read may be, less half a character: more of it was there."""
    size_bytes = len(message.encode())
    return any(most - 3 <= size_bytes <= most for most in (MAX_MESSAGE_BYTES, MAX_LOG_BYTES))


def _read_file(directory: Path, file: Path) -> tuple[str, bool]:
    """End of the file, and True; or why it cannot be read, and False. A file that is not there is empty."""
    try:
        with regular_file(directory, file) as fd:
            return clipped_end(read_tail(fd, MAX_MESSAGE_BYTES)[0], MAX_MESSAGE_BYTES), True
    except FileNotFoundError:
        return "", True
    except (OSError, ValueError) as error:
        return f"Error on reading termination log {file}: {_words(error)}", False


def _read_log(directory: Path, log_file: Path) -> str:
    """End of the newest file; also of the one before it, when the log was rotated so late that the newest has less."""
    try:
        with regular_file(directory, log_file) as fd:
            tail, is_whole = read_tail(fd, _LOG_TAIL_BYTES)
        if is_whole and len(tail) < _LOG_TAIL_BYTES:
            before, is_whole = _tail_before(directory, log_file, _LOG_TAIL_BYTES - len(tail))
            tail = before + tail
        return crash_trace(tail, is_whole)
    except (OSError, ValueError) as error:
        return f"Error on reading termination message from logs: {_words(error)}"


def _tail_before(directory: Path, log_file: Path, max_bytes: int) -> tuple[bytes, bool]:
    """End of the file that was rotated last, and whether that is all of it. Nothing of one that was compressed since,
    or is the log itself still. Raises OSError."""
    names = split_unused(rotated_of(log_file.name, os.listdir(log_file.parent)))[0]
    if not names or names[-1].endswith(COMPRESSED):
        return b"", True
    newest = log_file.with_name(names[-1])
    with contextlib.suppress(FileNotFoundError), regular_file(directory, newest) as fd:
        return (b"", True) if newest.samefile(log_file) else read_tail(fd, max_bytes)
    return b"", True


def _words(error: OSError | ValueError) -> str:
    """ValueError is what a path with a NUL raises."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
