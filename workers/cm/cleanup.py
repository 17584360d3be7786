"""Slices above those of pods, and slices that pods have left behind: kept as the master plans them, beside all else.

Mirrors UpdateQOSCgroups and enforceNodeAllocatableCgroups (pkg/kubelet/cm) and cleanupOrphanedPodCgroups
(pkg/kubelet/kubelet_pods.go). Different on purpose: a slice is stopped when nothing runs in it any more; what still
does belongs to containers, which have collectors of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Final

from ipc.host.clock import Clock
from ipc.k8s.podresources.cgroup_config import CgroupConfig
from ipc.k8s.podresources.pod_cgroups import parse_slice, uid_in_name
from ipc.link.messages.node_worker import UpdatePodCgroups
from workers.kubecontainer.runtime import RuntimeCallError
from workers.kubecontainer.slices import Slices

MAX_STOPPED: Final = 100
"""Most slices of one plan that are stopped; the next plan has the others."""

log = logging.getLogger(__name__)


class PodCgroupCleanup:
    """Carries out the newest plan; one that comes meanwhile takes the place of one that waits."""

    def __init__(self, slices: Slices, clock: Clock) -> None:
        self._slices = slices
        self._clock = clock
        self._plan: UpdatePodCgroups | None = None
        self._wake = asyncio.Event()
        self._given: dict[str, CgroupConfig] = {}
        """Values that the slices above those of pods were given last."""
        self._orphans: dict[str, float] = {}
        """Slices of pods that the master did not know -> when they were first seen, monotonic seconds."""

    def ask(self, plan: UpdatePodCgroups) -> None:
        """Carry that out as soon as possible."""
        self._plan = plan
        self._wake.set()

    async def run(self) -> None:
        """Carry out plans for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            plan, self._plan = self._plan, None
            if plan is not None:
                await self._give(plan.slices)
                await self._stop_orphans(plan)

    async def _give(self, slices: Mapping[str, CgroupConfig]) -> None:
        """Only what has changed, or whose slice is not there: systemd keeps what it was told."""
        for name, config in slices.items():
            if self._given.get(name) == config and self._slices.exists(name):
                continue
            self._given.pop(name, None)
            try:
                await self._slices.start(name, config)
            except RuntimeCallError as error:
                log.warning("values of %s: %s", name, error)
            else:
                self._given[name] = config

    async def _stop_orphans(self, plan: UpdatePodCgroups) -> None:
        """A slice that was there before a plan that does not know its pod is nobody's: a pod is known before its slice
        is made, and until that was stopped."""
        try:
            empty = self._empty(plan.uids)
        except OSError as error:
            log.warning("slices of pods cannot be listed: %s", error.strerror or error)
            return
        now = self._clock.now().mono
        self._orphans = {name: self._orphans.get(name, now) for name in empty}
        due = [name for name, seen_at in self._orphans.items() if seen_at < plan.planned_at]
        for name in due[:MAX_STOPPED]:
            try:
                await self._slices.stop(name)
            except RuntimeCallError as error:
                log.warning("slice %s of a pod that is gone: %s", name, error)
            else:
                log.info("stopped %s, whose pod is gone", name)

    def _empty(self, uids: Collection[str]) -> list[str]:
        """Slices without a process, of other pods than these: lists three directories of the kernel. Raises OSError."""
        known = {f"pod{uid_in_name(uid)}" for uid in uids}
        others = [name for name in self._slices.pods() if parse_slice(name)[-1] not in known]
        return [name for name in others if not self._slices.is_populated(name)]
