"""A pod of which the files are measured, without a process."""

from __future__ import annotations

from pathlib import Path

from ipc.host.clock import SystemClock
from workers.stats.files import Files
from workers.stats.targets import ContainerTarget, PodDirectories, PodTarget
from workers.userns.unshare import Unshare

OTHER_DEVICE = "/dev/shm"
"""Another file system than that of a test's directory."""


def measured_pod(layer: Path) -> PodTarget:
    """A pod with one container, whose writable layer that directory is."""
    main = ContainerTarget(
        id="main", name="main", attempt=0, image="", pid=1, start_ticks=0, started_at=1.0, layer=str(layer)
    )
    return PodTarget(
        uid="u", name="web", namespace="default", started_at=1.0, host_network=False, infra=None, containers=(main,)
    )


def measured_files(directory: Path) -> Files:
    """Measures pods below ``pods`` of that directory, and nothing that needs Podman's user namespace."""
    directories = PodDirectories(pods=str(directory / "pods"), logs=str(directory))
    return Files(directories, SystemClock(), Unshare(podman="/nonexistent"))
