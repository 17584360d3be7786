"""Says when the master's loop was held up: while it works, no pod gets its turn."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Final

from ipc.host.clock import Clock
from ipc.host.log.entry import line_about

HOUSEKEEPING_WARNING_S: Final = 1.0
"""pkg/kubelet/kubelet.go, housekeepingWarningDuration."""

log = logging.getLogger(__name__)


@contextlib.contextmanager
def warn_if_slow(clock: Clock, what: str, limit_s: float) -> Iterator[None]:
    """A log line when what is done inside takes longer than that."""
    began_at = clock.now().mono
    yield
    took_s = clock.now().mono - began_at
    if took_s > limit_s:
        log.warning("%s took %.1f s, longer than %g s", what, took_s, limit_s, extra=line_about(duration_s=took_s))
