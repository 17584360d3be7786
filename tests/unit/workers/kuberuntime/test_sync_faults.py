"""The N-th call goes wrong, for every N, in three ways: later syncs on fresh looks always come to the same end.

At no moment do two containers of one name run: the fake Podman itself watches that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from ipc.k8s.api.v1.container import ContainerRestartRule, ContainerRestartRuleOnExitCodes
from ipc.k8s.api.v1.pod import Pod
from ipc.k8s.kubecontainer.restart_policy import is_restartable_init
from ipc.link.messages.pod_worker import WorkType
from tests.fakes.clock import simulate
from tests.fakes.runtime import Flavour
from tests.support.pods import UID, container, pod
from tests.support.sync import FakeHost
from workers.kubecontainer import labels

Prepare = Callable[[FakeHost], Awaitable[None]]
MAX_CALLS = 40
"""No scenario makes more calls than that."""

TWO = pod("a", "b")
EDITED = pod("a", container("b", args=("sleep", "1000001")))
OTHER_SANDBOX = pod("a", "b", hostname="other")
PULLED = pod("a", container("b", image="registry.test/app:1"))


async def nothing(host: FakeHost) -> None:
    """A new pod."""


async def running(host: FakeHost) -> None:
    await host.settle(TWO)


async def crashed(host: FakeHost) -> None:
    await running(host)
    host.podman.exit(host.running()["b"], 1)


async def lost_sandbox(host: FakeHost) -> None:
    await running(host)
    (infra,) = [c for c in host.podman.containers.values() if c.is_infra]
    host.podman.exit(infra.id)


async def removed_by_hand(host: FakeHost) -> None:
    await running(host)
    (sandbox_id,) = host.podman.pods
    host.podman.remove_pod(sandbox_id)


async def started_by_hand(host: FakeHost) -> None:
    """The dead predecessor of b runs again, while b has ended."""
    await crashed(host)
    dead = next(c for c in host.podman.containers.values() if c.labels.get(labels.CONTAINER_NAME) == "b")
    host.podman.start_container(dead.id)


SIDECAR = container("side", restart_policy="Always")
RULE = ContainerRestartRule(
    action="RestartAllContainers", exit_codes=ContainerRestartRuleOnExitCodes(operator="In", values=(42,))
)
STAGED = pod(
    "a",
    container("b", restart_policy="OnFailure", restart_policy_rules=(RULE,)),
    init_containers=(container("init", args=("true",)), SIDECAR),
)
OTHER_SIDECAR = container("side", restart_policy="Always", args=("sleep", "1000001"))
STAGED_EDITED = pod("a", "b", init_containers=(container("init", args=("true",)), OTHER_SIDECAR))


async def initializing(host: FakeHost) -> None:
    await host.sync(STAGED)
    await asyncio.sleep(1)


async def staged(host: FakeHost) -> None:
    await host.settle(STAGED)


async def lost_stage(host: FakeHost) -> None:
    await staged(host)
    (infra,) = [c for c in host.podman.containers.values() if c.is_infra]
    host.podman.exit(infra.id)


async def triggered(host: FakeHost) -> None:
    await staged(host)
    host.podman.exit(host.running()["b"], 42)


SYNCS = [
    (nothing, STAGED),
    (initializing, STAGED),
    (initializing, STAGED_EDITED),
    (staged, STAGED_EDITED),
    (lost_stage, STAGED),
    (triggered, STAGED),
    (nothing, TWO),
    (nothing, PULLED),
    (running, EDITED),
    (running, OTHER_SANDBOX),
    (crashed, TWO),
    (lost_sandbox, TWO),
    (lost_sandbox, OTHER_SANDBOX),
    (removed_by_hand, TWO),
    (started_by_hand, TWO),
]


@pytest.mark.parametrize("flavour", list(Flavour), ids=lambda flavour: flavour.name)
@pytest.mark.parametrize(("prepare", "wanted"), SYNCS, ids=lambda value: getattr(value, "__name__", ""))
def test_every_interrupted_sync_converges(tmp_path: Path, prepare: Prepare, wanted: Pod, flavour: Flavour) -> None:
    async def one(nth: int) -> bool:
        """False when the sync made fewer calls than that."""
        host = FakeHost(tmp_path / str(nth))
        await prepare(host)
        host.next_worker()
        host.runtime.fail(nth, flavour)
        await host.sync(wanted)
        reached = len(host.runtime.calls) >= nth
        host.next_worker()
        await host.settle(wanted)
        await check(host, wanted)
        if prepare is nothing and flavour is not Flavour.FAILED:
            attempts = {c.attempt for c in (await host.observe(UID)).containers}
            assert attempts == {0}, "what never ran before counts as a restart"
        return reached

    assert not all(simulate(partial(one, nth)) for nth in range(1, MAX_CALLS)), "more calls than expected"


async def check(host: FakeHost, wanted: Pod) -> None:
    status = await host.observe(UID)
    sidecars = (c for c in wanted.spec.init_containers if is_restartable_init(c))
    assert host.running().keys() == {c.name for c in (*wanted.spec.containers, *sidecars)}
    assert len(status.sandboxes) == len(host.podman.pods) == 1
    assert host.podman.layers == set()
    await host.runtime.end_leftovers(str(host.logs_dir))
    assert host.podman.lost == {}
    names = [c.name for c in status.containers]
    assert all(names.count(name) <= 2 for name in names), "one that runs, one that is dead"


@pytest.mark.parametrize("flavour", list(Flavour), ids=lambda flavour: flavour.name)
@pytest.mark.parametrize("prepare", [running, crashed, lost_sandbox, started_by_hand], ids=lambda p: p.__name__)
def test_every_interrupted_end_is_an_end(tmp_path: Path, prepare: Prepare, flavour: Flavour) -> None:
    async def one(nth: int) -> bool:
        host = FakeHost(tmp_path / str(nth))
        await prepare(host)
        host.next_worker()
        host.runtime.fail(nth, flavour)
        await host.sync(TWO, WorkType.TERMINATING, grace_period_s=2)
        await host.sync(TWO, WorkType.TERMINATED, remove=True)
        reached = len(host.runtime.calls) >= nth
        host.next_worker()
        await host.settle(TWO, WorkType.TERMINATING, grace_period_s=2)
        await host.settle(TWO, WorkType.TERMINATED, remove=True)
        assert (host.podman.pods, host.podman.containers, host.podman.layers) == ({}, {}, set())
        assert list(host.logs_dir.iterdir()) == []
        return reached

    assert not all(simulate(partial(one, nth)) for nth in range(1, MAX_CALLS)), "more calls than expected"
