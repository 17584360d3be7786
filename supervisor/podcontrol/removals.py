"""Removals that wait: nothing is deleted on partial knowledge, of what is wanted or of what runs."""

from __future__ import annotations

import msgspec

from ipc.host.clock import Instant
from supervisor.podcontrol.announcer import Announcer
from supervisor.podcontrol.command_buffer import CommandBuffer
from supervisor.pods.cache import PodCache
from supervisor.pods.poison import PoisonPods
from supervisor.pods.record import PodRecord
from supervisor.pods.table import PodTable
from supervisor.protocol.events import KillPod


class Removals:
    """REMOVEs until every source was read once and one full relist has succeeded."""

    def __init__(self) -> None:
        self._are_sources_ready = False
        self._waiting: dict[str, int | None] = {}
        """UID -> grace period that came with it, in seconds."""

    @property
    def are_sources_ready(self) -> bool:
        """Every configured source was read completely once."""
        return self._are_sources_ready

    def sources_ready(self) -> None:
        """Every configured source was read completely once."""
        self._are_sources_ready = True

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def add(self, uid: str, grace_period_s: int | None) -> None:
        """Have a pod removed as soon as enough is known; another grace period replaces the one before."""
        self._waiting[uid] = grace_period_s

    def withdraw(self, uid: str) -> None:
        """The pod is wanted after all."""
        self._waiting.pop(uid, None)

    def take_due(self, relisted_at: float) -> dict[str, int | None]:
        """Removals to carry out now, with their grace periods; they do not wait any more."""
        if not (self._are_sources_ready and relisted_at):
            return {}
        due, self._waiting = self._waiting, {}
        return due


class PodRemovals(msgspec.Struct, eq=False):
    """Terminates pods that are removed, when enough is known."""

    _pod_table: PodTable
    _cache: PodCache
    _poison_pods: PoisonPods
    _announcer: Announcer
    _out: CommandBuffer
    _waiting: Removals = msgspec.field(default_factory=Removals)

    @property
    def are_sources_ready(self) -> bool:
        """Every configured source was read completely once."""
        return self._waiting.are_sources_ready

    def sources_ready(self, now: Instant) -> None:
        """Every configured source was read completely once."""
        self._waiting.sources_ready()
        self.carry_out(now)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def going_down(self, namespace: str, name: str) -> list[PodRecord]:
        """Pods of that name that were removed, or will be as soon as every source was read."""
        named = self._pod_table.named(namespace, name)
        return [state for state in named if state.lifecycle.removed or state.uid in self._waiting]

    def remove(self, uid: str, grace_s: int | None, now: Instant) -> None:
        """Terminate a pod as soon as every source was read once and one full relist has succeeded."""
        self._waiting.add(uid, grace_s)
        self.carry_out(now)

    def withdraw(self, uid: str) -> None:
        """The pod is wanted after all."""
        self._waiting.withdraw(uid)

    def carry_out(self, now: Instant) -> None:
        """Terminate the removed pods for which enough is known by now."""
        for uid, grace_s in self._waiting.take_due(self._cache.relisted_at).items():
            state = self._pod_table.get(uid)
            if state is not None:
                self.terminate(state, grace_s, now)

    def on_kill_pod(self, kill: KillPod, now: Instant) -> None:
        for state in self.going_down(kill.namespace, kill.name):
            if state.uid in self._waiting:
                self._waiting.add(state.uid, kill.grace_period_s)
            else:
                self.terminate(state, kill.grace_period_s, now)

    def terminate(self, state: PodRecord, grace_s: int | None, now: Instant) -> None:
        """Have the pod end and be removed at once."""
        if not state.lifecycle.removed:
            self._poison_pods.absolve(state.uid, now.mono)
        if state.lifecycle.remove(grace_s, now.wall):
            self._out.cancel_sync(state)
        self._pod_table.touch((state.uid,))
        self._announcer.report(state, now)
