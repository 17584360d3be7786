"""Settings of the workers of a simulated agent."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ipc.link.wire.boot import WorkerSettings
from tests.fakes.ownership import LABEL_KEY
from tests.sim.runtime import INSTANCE

NODE_NAME: Final = "sim"


def worker_settings(directory: Path) -> WorkerSettings:
    """Settings of every simulation; all that a worker writes lies below the directory."""
    return WorkerSettings(
        instance=INSTANCE,
        label_key=LABEL_KEY,
        node_name=NODE_NAME,
        podman_socket="",
        pod_logs_dir=str(directory / "pod-logs"),
        pods_dir=str(directory / "pods"),
        inspect_file=str(directory / "inspects"),
        image_records_file=str(directory / "images.json"),
    )
