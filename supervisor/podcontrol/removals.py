"""Removals that wait: nothing is deleted on partial knowledge, of what is wanted or of what runs."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.podcontrol.pod_reporter import PodReporter
from supervisor.pods.cache import PodCache
from supervisor.pods.crash_attribution import CrashAttribution
from supervisor.pods.parts import Removal
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.events import KillPod


class PodRemovals(msgspec.Struct, eq=False):
    """Terminates pods that are removed, once every source was read and one full relist has succeeded."""

    _pod_table: PodTable
    _cache: PodCache
    _crashes: CrashAttribution
    _reporter: PodReporter
    _out: CommandBuffer
    are_sources_ready: bool = False
    """Every configured source was read completely once."""

    def sources_ready(self, now: Instant) -> None:
        """Every configured source was read completely once."""
        self.are_sources_ready = True
        self.carry_out(now)

    def going_down(self, namespace: str, name: str) -> list[PodRecord]:
        """Pods of that name that were removed, or will be as soon as every source was read."""
        named = self._pod_table.named(namespace, name)
        return [state for state in named if state.lifecycle.removed or state.parts.removal is not None]

    def remove(self, state: PodRecord, grace_s: int | None, now: Instant) -> None:
        """Terminate the pod as soon as enough is known; another grace period replaces the one before."""
        if self._is_enough_known():
            self.terminate(state, grace_s, now)
        else:
            state.parts.removal = Removal(grace_s)

    def withdraw(self, state: PodRecord) -> None:
        """The pod is wanted after all."""
        state.parts.removal = None

    def carry_out(self, now: Instant) -> None:
        """Terminate the removed pods, if enough is known by now."""
        if not self._is_enough_known():
            return
        for state in self._pod_table:
            if (removal := state.parts.removal) is not None:
                state.parts.removal = None
                self.terminate(state, removal.grace_period_s, now)

    def _is_enough_known(self) -> bool:
        return self.are_sources_ready and self._cache.relisted_at > 0.0

    def on_kill_pod(self, kill: KillPod, now: Instant) -> None:
        for state in self.going_down(kill.namespace, kill.name):
            if state.parts.removal is not None:
                state.parts.removal = Removal(kill.grace_period_s)
            else:
                self.terminate(state, kill.grace_period_s, now)

    def terminate(self, state: PodRecord, grace_s: int | None, now: Instant) -> None:
        """Have the pod end and be removed at once."""
        if not state.lifecycle.removed:
            self._crashes.try_again(state.uid, now.mono)
        if state.lifecycle.remove(grace_s, now.wall):
            self._out.cancel_sync(state)
        self._pod_table.touch((state.uid,))
        self._reporter.report(state, now)
