"""No core dumps of processes whose memory may hold Secrets: a worker that hangs is ended by SIGABRT."""

from __future__ import annotations

import resource


def forbid_core_dumps() -> None:
    """Set the limit of core dumps to 0, for this process and what it starts, which may raise it again."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
