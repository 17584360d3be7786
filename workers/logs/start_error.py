"""Start errors of containers, which Podman does not keep.

After a failed start Podman shows the container as created and never started, with no error (4.3.1), exactly as one that
was not started yet; the two need opposite treatment. So the failure is written beside the container's log before the
sync goes on, and the node worker reads it back: such a container counts as exited at its creation, as the CRI runtimes
report it (containerd: exit code 128, StartError).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ipc.host.regular_files import read_regular_file, write_regular_file
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from workers.logs import layout

START_ERROR_EXIT_CODE: Final = 128
MAX_MESSAGE_BYTES: Final = 4096
FILE_MODE: Final = 0o644
"""Longest message kept, in bytes."""

_NO_WORDS: Final = "the container could not be started"


def write(log_file: Path, message: str) -> None:
    """The start of the container with that log failed. Raises OSError."""
    layout.ensure_directory(log_file)
    write_regular_file(_mark(log_file), message.encode()[:MAX_MESSAGE_BYTES], FILE_MODE)


def read(log_file: Path) -> str | None:
    """Error of the start; None when it did not fail. A file that was cut short still counts. Raises OSError."""
    try:
        words = read_regular_file(_mark(log_file), MAX_MESSAGE_BYTES)
    except FileNotFoundError:
        return None
    return words.decode(errors="replace") or _NO_WORDS


def may_have_start_errors(status: RuntimePodStatus) -> bool:
    """Whether `with_start_errors` reads anything."""
    return any(container.state is ContainerState.CREATED for container in status.containers)


def with_start_errors(status: RuntimePodStatus, pod_logs_dir: str) -> RuntimePodStatus:
    """The observation with every failed start seen as an exit. Reads a file per created container. Raises OSError."""
    directory = layout.pod_directory(pod_logs_dir, status.namespace, status.name, status.uid)
    containers = tuple(_looked_up(container, directory) for container in status.containers)
    return msgspec.structs.replace(status, containers=containers)


def _looked_up(container: RuntimeContainerStatus, directory: Path) -> RuntimeContainerStatus:
    if container.state is not ContainerState.CREATED:
        return container
    message = read(layout.log_file(directory, container.name, container.attempt))
    if message is None:
        return container
    return msgspec.structs.replace(
        container,
        state=ContainerState.EXITED,
        exit_code=START_ERROR_EXIT_CODE,
        finished_at=container.created_at,
        error=message,
    )


def _mark(log_file: Path) -> Path:
    return log_file.with_suffix(layout.START_ERROR_SUFFIX)
