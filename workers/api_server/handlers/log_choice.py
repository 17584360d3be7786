"""The log file that answers a request, decided from the pod's status alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.k8s.api.pod_containers import every_container, every_status
from ipc.k8s.api.v1.status import ContainerStatus
from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.sync_error import SyncError
from workers.api_server.core.status_errors import bad_request
from workers.logs import layout

_PULL_PROBLEMS: Final[Mapping[str, str]] = {
    SyncError.IMAGE_PULL: "image can't be pulled",
    SyncError.IMAGE_PULL_BACK_OFF: "trying and failing to pull image",
}
"""Waiting reasons that deserve other words (kubelet_pods.go, validateContainerLogStatus)."""


class LogChoice(msgspec.Struct, frozen=True):
    """One life of one container of one pod."""

    container: str
    attempt: int


def choose_log(pod: PodChanged, container: str, previous: bool) -> LogChoice:
    """The life of the container whose log is meant (pkg/kubelet/kubelet_pods.go, validateContainerLogStatus).

    An empty ``container`` will do when the pod has one regular container. Raises ApiError 400 in upstream's words.
    """
    name = _container_name(pod, container)
    status = next((s for s in every_status(pod.status) if s.name == name), None)
    where = f'container "{name}" in pod "{pod.pod.metadata.name}"'
    if status is None:
        raise bad_request(f"{where} is not available")
    if previous:
        return LogChoice(name, _previous_attempt(pod, status))
    if status.state.running or _was_started(status):
        return LogChoice(name, status.restart_count)
    if status.last_state.terminated and status.last_state.terminated.container_id:
        return LogChoice(name, _last_attempt(status))
    if status.state.terminated or status.last_state.terminated:
        raise bad_request(f"{where} is terminated")
    reason = status.state.waiting.reason if status.state.waiting else ""
    raise bad_request(f"{where} is waiting to start: {_PULL_PROBLEMS.get(reason, reason or 'no logs yet')}")


def has_ended(pod: PodChanged | None, choice: LogChoice) -> bool:
    """Whether that life of the container is over, so that its log is complete. A pod that is gone has ended."""
    status = None if pod is None else next((s for s in every_status(pod.status) if s.name == choice.container), None)
    if status is None or status.restart_count > choice.attempt:
        return True
    return status.state.running is None


def log_path(pod_logs_dir: Path, pod: PodChanged, choice: LogChoice) -> Path:
    """Where that life's log lies. Raises ApiError 400 when a part of it is no plain file name."""
    meta = pod.pod.metadata
    directory = layout.pod_directory(str(pod_logs_dir), meta.namespace, meta.name, meta.uid)
    path = layout.log_file(directory, choice.container, choice.attempt)
    if path.parent.parent.parent != pod_logs_dir or ".." in path.parts or "\0" in str(path):
        raise bad_request("the pod's names cannot be part of a log's path")
    return path


def _container_name(pod: PodChanged, asked: str) -> str:
    """The one that is meant (pkg/registry/core/pod/strategy.go, validateContainer)."""
    spec = pod.pod.spec
    names = [found.container.name for found in every_container(spec)]
    where = f"pod {pod.pod.metadata.name}"
    if not asked and len(spec.containers) == 1:
        return spec.containers[0].name
    if not asked:
        raise bad_request(f"a container name must be specified for {where}, choose one of: [{' '.join(names)}]")
    if asked not in names:
        raise bad_request(f"container {asked} is not valid for {where}")
    return asked


def _was_started(status: ContainerStatus) -> bool:
    """Terminated, but not for want of a container."""
    return status.state.terminated is not None and bool(status.state.terminated.container_id)


def _last_attempt(status: ContainerStatus) -> int:
    """The life that ``last_state`` tells of: the newest one while its successor waits, the one before it otherwise."""
    newest_runs = status.state.running is not None or _was_started(status)
    return status.restart_count - 1 if newest_runs else status.restart_count


def _previous_attempt(pod: PodChanged, status: ContainerStatus) -> int:
    last, attempt = status.last_state.terminated, _last_attempt(status)
    if last is None or not last.container_id or attempt < 0:
        name = pod.pod.metadata.name
        raise bad_request(f'previous terminated container "{status.name}" in pod "{name}" not found')
    return attempt
