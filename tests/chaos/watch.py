"""Looks again and again while the storm is on: what must never be so, not even for a moment."""

from __future__ import annotations

import contextlib
import http.client
import threading
from contextlib import AbstractContextManager
from typing import Final

from tests.chaos import procs
from tests.chaos.background import meanwhile
from tests.chaos.plan import parts_of
from tests.e2e.agent import Agent, Json

PERIOD_S: Final = 1.0
MAX_FINDINGS: Final = 20
_STATUSES: Final = ("containerStatuses", "initContainerStatuses")


class Watch:
    """A watch whose findings are sentences; none is good."""

    def __init__(self, agent: Agent, calm: tuple[str, ...]) -> None:
        self._agent = agent
        self._calm = frozenset((pod, part) for pod in calm for part in parts_of(pod))
        self._calm_lives = self._pod_table()
        self._restarts: dict[tuple[str, str], int] = {}
        """The last count that was told, by whichever agent."""
        self.twins: list[str] = []
        self.disturbed: list[str] = []
        self.falls: list[str] = []
        self.samples = 0
        self.answers = 0
        """How often the agent answered."""

    def on(self) -> AbstractContextManager[None]:
        """Watch until the end of the block."""
        return meanwhile(self._watch, "watch")

    def _watch(self, end: threading.Event) -> None:
        while not end.wait(PERIOD_S):
            self._look()
            self._compare_restarts()

    def _look(self) -> None:
        self.samples += 1
        found = procs.running(self._agent.instance)
        for one, other in procs.twins(found):
            _add(self.twins, f"{one.pod}/{one.part} runs twice: pids {one.pid} and {other.pid}")
        now = self._pod_table(found)
        for key in self._calm_lives.keys() - now.keys():
            _add(self.disturbed, f"{'/'.join(key)} does not run")
        for key, lifecycle in now.items():
            if key in self._calm_lives and lifecycle != self._calm_lives[key]:
                _add(self.disturbed, f"{'/'.join(key)} is another process")

    def _pod_table(self, found: list[procs.Running] | None = None) -> dict[tuple[str, str], tuple[int, float]]:
        seen = procs.running(self._agent.instance) if found is None else found
        return {(r.pod, r.part): (r.pid, r.started_at) for r in seen if (r.pod, r.part) in self._calm}

    def _compare_restarts(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            shown = self._agent.pods()
            self.answers += 1
            for name, pod in shown.items():
                self._compare(name, pod)

    def _compare(self, name: str, pod: Json) -> None:
        for status in (each for kind in _STATUSES for each in pod["status"].get(kind, ())):
            key, count = (name, status["name"]), status["restartCount"]
            before = self._restarts.get(key, 0)
            self._restarts[key] = count
            if count < before:
                _add(self.falls, f"{'/'.join(key)}: restart count {before}, then {count}: {status}")


def _add(findings: list[str], summary: str) -> None:
    """Once each, and not for ever."""
    if summary not in findings and len(findings) < MAX_FINDINGS:
        findings.append(summary)
