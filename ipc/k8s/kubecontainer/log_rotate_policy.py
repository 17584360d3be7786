"""When a container's log is rotated, and how much of it is kept (KubeletConfiguration, containerLog...)."""

from __future__ import annotations

from typing import Final

import msgspec

NO_ROTATION: Final = -1


class LogRotatePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """pkg/kubelet/logs/container_log_manager.go, LogRotatePolicy, and what its manager is made with."""

    max_size_bytes: int = NO_ROTATION
    """From this size on a log is rotated; negative for no rotation."""
    max_files: int = 5
    """Files that a container's life may have, with the one that is written; at least 2."""
    max_workers: int = 1
    """Files that are compressed at a time."""
    monitor_interval_s: float = 10.0
    """At least so long lies between two looks at a log, unless it grows so fast that it would be much too large by
    then."""

    @property
    def rotates(self) -> bool:
        return self.max_size_bytes >= 0
