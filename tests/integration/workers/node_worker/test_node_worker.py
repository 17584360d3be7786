"""The node worker apart from its looks: boot, board, pulls, end. On a fake Podman, in simulated time."""

from __future__ import annotations

import asyncio

import pytest

from ipc.k8s.kubecontainer.pod_status import ContainerState, SandboxState
from ipc.link.messages.base import PullEnded, PullProgress, Ready
from ipc.link.messages.node_worker import CancelPull, Observe, Relisted, RuntimeHealth, StartPull, Track
from tests.fakes.clock import simulate, simulated
from tests.fakes.runtime import Flavour
from tests.support.node_worker import SLOT, Host


@simulated
async def test_boot_is_ready_then_healthy_then_everything() -> None:
    host = Host()
    began = host.now()
    container = host.running("u1")
    async with host.worker() as master:
        ready, health, relisted = master.reports[:3]
        assert isinstance(ready, Ready)
        assert health == RuntimeHealth(healthy=True, version="4.3.1")
        assert isinstance(relisted, Relisted)
        assert began <= relisted.started_at < began + 0.01
        (orphan,) = relisted.changed
        assert (orphan.uid, orphan.row, orphan.changed) == ("u1", -1, True)
        assert orphan.status is not None
        assert (orphan.status.name, orphan.status.namespace) == ("name-u1", "default")
        assert [(c.id, c.state) for c in orphan.status.containers] == [(container, ContainerState.RUNNING)]
        assert [s.state for s in orphan.status.sandboxes] == [SandboxState.READY]


@simulated
async def test_what_it_does_and_counts_is_on_the_board() -> None:
    host = Host()
    async with host.worker() as master:
        await asyncio.sleep(1)
        row = master.board.read_worker(SLOT)
        assert row is not None
        assert row.step == "waiting"
        # Leftovers are looked for beside the looks at pods, and counted with the next one.
        assert row.counters.runtime_calls == len(host.runtime.calls) - host.calls("end_leftovers") > 0
        assert row.counters.runtime_errors == 0


@simulated
async def test_a_pull_goes_on_beside_all_looking() -> None:
    host = Host()
    host.podman.registry.add("quay.io/a:1")
    host.podman.pull_s = 100.0
    async with host.worker() as master:
        begun_at = host.now()
        master.send(StartPull(reference="quay.io/a:1"))
        host.running("u1")
        master.send(Track(uid="u1", row=0), Observe(uids=("u1",)))
        await master.observation("u1", lambda s: bool(s.containers))
        assert host.now() - begun_at < 1.0
        ended = await master.first(PullEnded)
        assert (ended.image_id, ended.error) == (host.podman.images["quay.io/a:1"].id, "")
        assert 100.0 <= ended.took_s < 101.0
        assert master.count(PullProgress) > 5


@simulated
async def test_a_pull_is_broken_off_on_demand_and_at_the_end() -> None:
    host = Host()
    host.podman.pull_s = 100.0
    async with host.worker() as master:
        master.send(StartPull(reference="quay.io/a:1"), StartPull(reference="quay.io/b:1"))
        await asyncio.sleep(10)
        master.send(CancelPull(reference="quay.io/a:1"))
        assert (await master.first(PullEnded)).reference == "quay.io/a:1"
        assert host.podman.broken_off == ["quay.io/a:1"]
    assert host.podman.broken_off == ["quay.io/a:1", "quay.io/b:1"]


@simulated
async def test_the_end_of_the_link_ends_the_worker() -> None:
    host = Host()
    async with host.worker() as master:
        master.channel.close()
        await master.channel.wait_closed()


@pytest.mark.parametrize("flavour", list(Flavour))
@pytest.mark.parametrize("nth", range(1, 13))
def test_whichever_call_fails_the_view_comes_right(nth: int, flavour: Flavour) -> None:
    async def main() -> None:
        host = Host()
        host.running("u1")
        host.running("u2")
        host.runtime.fail(nth, flavour)
        async with host.worker() as master:
            master.send(Track(uid="u1", row=0), Track(uid="u3", row=1), Observe(uids=("u1", "u3")))
            ended = host.running("u3", command=["sh", "-c", "sleep 2; exit 4"])
            await master.observation("u3", lambda s: any(c.exit_code == 4 for c in s.containers))
            await asyncio.sleep(30)
            one, three = master.row(0), master.row(1)
            assert one is not None
            assert one.containers[0].state is ContainerState.RUNNING
            assert three is not None
            assert [(c.id, c.state) for c in three.containers] == [(ended, ContainerState.EXITED)]
            assert master.count(Relisted) >= 2

    simulate(main)
