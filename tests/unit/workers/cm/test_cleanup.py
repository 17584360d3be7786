"""Plans that the node worker carries out: values of the slices that pods share, and the end of slices without a pod."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ipc.k8s.podresources.cgroup_config import CgroupConfig
from ipc.link.messages.node_worker import UpdatePodCgroups
from tests.fakes.clock import SimClock, simulate
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime, Flavour
from tests.support.pods import IMAGE
from workers.cm.cleanup import PodCgroupCleanup

ROOT = "rootlet.slice"
LOST = "rootlet-besteffort-podlost.slice"
KNOWN = "rootlet-besteffort-podknown.slice"
SMALL, LARGE = CgroupConfig(memory=1 << 20), CgroupConfig(memory=1 << 30)


class Cleanup:
    """The loop, with what it has done."""

    def __init__(self, clock: SimClock) -> None:
        self.clock = clock
        self.podman = FakePodman(clock, images=[IMAGE])
        self.runtime = FakeRuntime(self.podman, "one")
        self._cleanup = PodCgroupCleanup(self.runtime.slices, clock)
        self._loop = asyncio.create_task(self._cleanup.run())

    async def plan(self, root: CgroupConfig = SMALL, *, planned_at: float | None = None) -> list[str]:
        """Names of the calls that the plan of this moment, or of an earlier one, leads to."""
        self.runtime.calls.clear()
        at = self.clock.now().mono if planned_at is None else planned_at
        self._cleanup.ask(UpdatePodCgroups(slices={ROOT: root}, uids=("known",), planned_at=at))
        await asyncio.sleep(1.0)
        return list(self.runtime.calls)


def on_cleanup(scenario: Callable[[Cleanup], Awaitable[None]]) -> None:
    async def run() -> None:
        cleanup = Cleanup(SimClock())
        await scenario(cleanup)
        cleanup._loop.cancel()

    simulate(run)


def test_values_are_given_once_and_again_when_they_change_or_are_gone() -> None:
    async def scenario(cleanup: Cleanup) -> None:
        assert await cleanup.plan() == ["start_slice"]
        assert await cleanup.plan() == []
        assert await cleanup.plan(LARGE) == ["start_slice"]
        assert cleanup.podman.slices == {ROOT: LARGE}
        cleanup.podman.slices.clear()
        assert await cleanup.plan(LARGE) == ["start_slice"]

    on_cleanup(scenario)


def test_what_was_not_given_is_given_by_the_next_plan() -> None:
    async def scenario(cleanup: Cleanup) -> None:
        cleanup.runtime.fail(1, Flavour.FAILED, "start_slice")
        await cleanup.plan()
        assert cleanup.podman.slices == {}
        await cleanup.plan()
        assert cleanup.podman.slices == {ROOT: SMALL}

    on_cleanup(scenario)


def test_a_slice_goes_that_two_plans_did_not_know() -> None:
    async def scenario(cleanup: Cleanup) -> None:
        cleanup.podman.slices = {ROOT: SMALL, LOST: SMALL, KNOWN: SMALL}
        await cleanup.plan()
        assert LOST in cleanup.podman.slices, "it may be of a pod that is newer than the plan"
        await cleanup.plan()
        assert cleanup.podman.slices.keys() == {ROOT, KNOWN}

    on_cleanup(scenario)


def test_a_slice_that_is_newer_than_the_plan_stays() -> None:
    async def scenario(cleanup: Cleanup) -> None:
        earlier = cleanup.clock.now().mono
        cleanup.podman.slices = {LOST: SMALL}
        await cleanup.plan(planned_at=earlier)
        await cleanup.plan(planned_at=earlier)
        assert LOST in cleanup.podman.slices

    on_cleanup(scenario)


def test_a_slice_in_which_something_runs_stays_until_that_has_ended() -> None:
    async def scenario(cleanup: Cleanup) -> None:
        cleanup.podman.slices = {LOST: SMALL}
        spec = {"image": IMAGE, "name": "x", "cgroup_parent": LOST, "command": ["sleep", "1000000"]}
        container = cleanup.podman.create_container(spec)
        cleanup.podman.start_container(container)
        for _ in range(3):
            await cleanup.plan()
        assert LOST in cleanup.podman.slices
        cleanup.podman.exit(container)
        await cleanup.plan()
        await cleanup.plan()
        assert LOST not in cleanup.podman.slices

    on_cleanup(scenario)
