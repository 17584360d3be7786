"""Unexpected errors in looking at one pod: that pod is not seen, and everybody else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ipc.link.messages.node_worker import ObservationFailed, Observe, Relist, Relisted, RuntimeHealth, Track
from tests.fakes.clock import simulated
from tests.fakes.runtime import FakeRuntime
from tests.support.node_worker import Host, Master
from workers.kubecontainer.runtime import InspectedContainer


class Broken(FakeRuntime):
    """Podman, of which one container cannot be understood."""

    broken = ""
    error: Callable[[], Exception] = RuntimeError

    async def inspect_container(self, id: str) -> InspectedContainer:
        found = await super().inspect_container(id)
        if id == self.broken:
            raise self.error()
        return found


async def relisted(master: Master) -> Relisted:
    before = len(master.reports)
    master.send(Relist())
    return await master.first(Relisted, after=before)


@simulated
async def test_a_container_that_cannot_be_understood_hides_its_pod_alone() -> None:
    host = Host()
    host.runtime = runtime = Broken(host.podman, "one", latency_s=0.001)
    ids = [host.running(f"u{number}") for number in range(3)]
    async with host.worker() as master:
        host.podman.exit(ids[1])
        host.podman.exit(ids[2])
        runtime.broken = ids[1]
        found = await relisted(master)
        assert (found.unseen, [seen.uid for seen in found.changed]) == (("u1",), ["u0", "u2"])
        failed = next(report for report in master.reports if isinstance(report, ObservationFailed))
        assert failed.uid == "u1"
        assert "container main" in failed.message
        assert "unexpected RuntimeError" in failed.message
        runtime.broken = ""
        found = await relisted(master)
        assert found.unseen == ()
        assert master.count(RuntimeHealth) == 1


@simulated
async def test_a_single_look_that_fails_as_nobody_expected_holds_up_no_other() -> None:
    host = Host()
    host.runtime = runtime = Broken(host.podman, "one", latency_s=0.001)
    ids = [host.running(f"u{number}") for number in range(40)]
    async with host.worker() as master:
        host.podman.exit(ids[1])
        host.podman.exit(ids[2])
        runtime.broken, before = ids[1], len(master.reports)
        master.send(Observe(uids=("u1", "u2")))
        await master.observation("u2", after=before)
        failed = await master.first(ObservationFailed, after=before)
        assert failed.uid == "u1"
        runtime.broken = ""
        await master.observation("u1", after=before)


@simulated
async def test_a_container_that_cannot_be_understood_and_is_half_removed_is_forgotten_when_it_is_gone() -> None:
    host = Host()
    host.runtime = runtime = Broken(host.podman, "one", latency_s=0.001)
    id = host.running("u0")
    async with host.worker() as master:
        host.podman.exit(id)
        host.podman.abandon(id, "removing")
        runtime.broken = id
        found = await relisted(master)
        assert (found.unseen, [seen.uid for seen in found.changed]) == ((), ["u0"])
        assert id not in host.podman.containers
        asked = runtime.calls.count("inspect_container")
        await relisted(master)
        assert runtime.calls.count("inspect_container") == asked, "nothing is left to ask for"


@pytest.mark.parametrize("tracked", [True, False])
def test_what_has_no_encoding_is_not_told_and_everything_else_is(tracked: bool) -> None:
    """A lone surrogate in an error; a pod without a row travels in the message."""

    @simulated
    async def scene() -> None:
        host = Host()
        good = host.running("u0")
        bad = host.pod("u1")
        id = host.container(bad, "u1")
        host.podman.start_container(id)
        host.podman.containers[id].error = "\udcff"
        async with host.worker() as master:
            if tracked:
                master.send(Track(uid="u1", row=1))
            host.podman.exit(good)
            found = await relisted(master)
            assert (found.unseen, [seen.uid for seen in found.changed]) == (("u1",), ["u0"])
            assert any(isinstance(report, ObservationFailed) and report.uid == "u1" for report in master.reports)

    scene()
