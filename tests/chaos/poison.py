"""A pod that kills its worker every time: whenever a pod worker says that it is at this pod, it is killed."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import threading
from collections.abc import Iterator
from typing import Final

from supervisor.suspects import POISON_DEATHS
from supervisor.sync_loop import SYNC_CRASH_LOOP_BACK_OFF
from tests.e2e.agent import Agent

POISON: Final = "poison-000"
PERIOD_S: Final = 0.02


class Poison:
    """Counts its kills."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.kills = 0
        self.error: Exception | None = None

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Until the end of the block."""
        end = threading.Event()
        thread = threading.Thread(target=self._kill_until, args=(end,), name="poison")
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
        if self.error is not None:
            raise self.error

    def findings(self) -> list[str]:
        """What is wrong, in sentences. An innocent pod may be isolated beside it, for a moment."""
        isolated = self._agent.log_text().count(f"default/{POISON}: {SYNC_CRASH_LOOP_BACK_OFF}")
        if self.kills < POISON_DEATHS:
            return [f"it has killed {self.kills} workers: too few to say anything"]
        return [] if isolated else [f"it has killed {self.kills} workers and was never isolated"]

    def _kill_until(self, end: threading.Event) -> None:
        try:
            while not end.wait(PERIOD_S):
                with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
                    self._kill_whoever_is_at_it()
        except Exception as error:  # of this thread: told by the one that waits
            self.error = error

    def _kill_whoever_is_at_it(self) -> None:
        for name, worker in self._agent.workers().items():
            if name.startswith("pods-") and worker["step"].startswith(f"default/{POISON}:"):
                os.kill(worker["pid"], signal.SIGKILL)
                self.kills += 1
