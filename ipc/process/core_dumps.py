"""No core dumps of processes whose memory may hold Secrets: a worker that hangs is ended by SIGABRT."""

from __future__ import annotations

import resource


def forbid_core_dumps() -> None:
    """For this process and what it starts, which may raise its limit again."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
