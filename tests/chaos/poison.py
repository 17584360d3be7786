"""A pod that kills its worker every time: whenever a pod worker says that it is at this pod, it is killed.

So that there is something to do for it its container is killed, too, every few seconds.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import threading
from collections import Counter
from contextlib import AbstractContextManager
from typing import Final

from ipc.host.clock import monotonic
from ipc.link.messages.event_reasons import SYNC_CRASH_LOOP_BACK_OFF
from supervisor.pods.crash_attribution import CRASH_THRESHOLD
from tests.chaos import procs
from tests.chaos.background import meanwhile
from tests.e2e.agent import Agent

POISON: Final = "poison-000"
PERIOD_S: Final = 0.02
RESTARTED_EVERY_S: Final = 4.0
ENOUGH: Final = 2 * CRASH_THRESHOLD
"""So many kills in one life of the agent have to isolate it. A sync that the killer was too slow for clears it."""


class Poison:
    """Counts its kills."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.kills = 0
        self._kills_in_life: Counter[int] = Counter()
        """By the agent's pid."""

    def on(self) -> AbstractContextManager[None]:
        """Until the end of the block."""
        return meanwhile(self._kill_until, "poison")

    def findings(self) -> list[str]:
        """Mistakes, in sentences. An innocent pod may be isolated beside it, for a moment."""
        isolated = self._agent.log_text().count(f"default/{POISON}: {SYNC_CRASH_LOOP_BACK_OFF}")
        most = max(self._kills_in_life.values(), default=0)
        if not self.kills:
            return ["it has killed nobody"]
        return (
            [f"it has killed {most} workers of one agent and was never isolated"]
            if most >= ENOUGH and not isolated
            else []
        )

    def _kill_until(self, end: threading.Event) -> None:
        restart_at = monotonic()
        while not end.wait(PERIOD_S):
            if monotonic() > restart_at:
                restart_at = monotonic() + RESTARTED_EVERY_S
                self._kill_container()
            with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
                self._kill_whoever_is_at_it()

    def _kill_container(self) -> None:
        for found in procs.running(self._agent.instance):
            if found.pod == POISON:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(found.pid, signal.SIGKILL)

    def _kill_whoever_is_at_it(self) -> None:
        for worker in self._agent.workers().values():
            if worker["step"].startswith(f"default/{POISON}:"):
                os.kill(worker["pid"], signal.SIGKILL)
                self.kills += 1
                self._kills_in_life[self._agent.process.pid] += 1
