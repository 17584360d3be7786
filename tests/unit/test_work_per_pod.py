"""Nothing grows faster than the number of pods: what concerns one pod is as much work beside many as beside few.

Counted are lines of code that run, not seconds. `tests.bench.scale` measures whole agents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.podresources.node_resources import NodeResources, PodCgroups
from supervisor.admission.predicates import UNKNOWN_NODE
from supervisor.protocol.events import HousekeepingTick, SyncTick
from tests.contract.target import FAKE_IMAGE, FakeTarget, container_spec, pod_spec
from tests.fakes.clock import SimLoop
from tests.fakes.ownership import ownership
from tests.fakes.podman import FakePodman
from tests.support.dialogue import Talk, absent, pod, running
from tests.support.work import work_of
from workers.containers.known_containers import KnownContainers
from workers.pleg.observer import Observer, Relisting

FEW, MANY = 10, 40
SLACK = 1.1
"""Words that are not the same in both: a table that grows, a number with one more digit."""


def as_much(few: int, many: int) -> bool:
    assert few > 0
    return many <= few * SLACK


# --- the master ---


def talk_with(pods: int, node: NodeResources = UNKNOWN_NODE) -> Talk:
    """So many pods run, and their sources were read."""
    talk = Talk(max_pods=2 * MANY, rows=2 * MANY, node=node)
    for index in range(pods):
        start(talk, f"p{index}")
    talk.ready()
    talk.relist()
    return talk


def start(talk: Talk, uid: str) -> None:
    talk.add(uid)
    talk.see(absent(uid))
    talk.done(uid, changed=True)
    talk.see(running(uid))
    talk.done(uid)


def edit(talk: Talk) -> None:
    talk.update(pod("p1", image="v2"))
    talk.done("p1", changed=True)
    talk.see(running("p1"))
    talk.done("p1")


def delete(talk: Talk) -> None:
    talk.remove("p1")
    talk.done("p1", changed=True)
    talk.see(absent("p1"))


ACTS: dict[str, Callable[[Talk], object]] = {
    "one more": lambda talk: start(talk, "new"),
    "edit": edit,
    "delete": delete,
    "look": lambda talk: talk.see(running("p1")),
    "housekeeping": lambda talk: talk.say(HousekeepingTick()),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_what_concerns_one_pod_is_as_much_work_for_the_master_beside_many(act: Callable[[Talk], object]) -> None:
    few, many = (work_of(partial(act, talk_with(pods))) for pods in (FEW, MANY))
    assert as_much(few, many), (few, many)


def test_a_start_of_all_is_as_much_work_per_pod_with_many() -> None:
    few, many = (work_of(partial(talk_with, pods)) / pods for pods in (FEW, MANY))
    assert as_much(round(few), round(many)), (few, many)


@pytest.mark.parametrize(
    "node", [UNKNOWN_NODE, NodeResources(pod_cgroups=PodCgroups())], ids=["no slices", "slices of pods"]
)
def test_a_tick_in_which_nothing_is_due_is_as_much_work_with_many(node: NodeResources) -> None:
    few, many = (tick_with(pods, node) for pods in (FEW, MANY))
    assert as_much(few, many), (few, many)


def tick_with(pods: int, node: NodeResources) -> int:
    """Work of a third tick: the first one collects garbage too and sends syncs, the second plans slices for these."""
    talk = talk_with(pods, node)
    talk.say(SyncTick())
    talk.say(SyncTick())
    return work_of(partial(talk.say, SyncTick()))


def test_a_sync_that_finds_nothing_is_as_much_work_for_the_master_beside_many() -> None:
    few, many = (resync_with(pods) for pods in (FEW, MANY))
    assert as_much(few, many), (few, many)


def resync_with(pods: int) -> int:
    """Work of a pod's share of the tick in which all are due, and of the end of its sync."""
    talk = talk_with(pods)
    talk.say(SyncTick())
    for uid in list(talk.syncs):
        talk.done(uid)
        state = talk.loop.state(uid)
        assert state is not None
        state.lifecycle.unsettle()  # else its periodic sync is passed over
    due = work_of(partial(talk.tick, 2 * talk.settings.sync_frequency_s)) // pods
    return due + work_of(partial(talk.done, "p1"))


# --- the node worker ---


async def relist(observer: Observer) -> Relisting:
    return await observer.relist(await observer.list_all())


def observation_with(pods: int, directory: Path, act: Callable[[Observer], Coroutine[Any, Any, object]]) -> int:
    """The work of that act when so many pods of two containers run and were seen."""

    async def prepare() -> tuple[FakeTarget, Observer]:
        target = FakeTarget(FakePodman(SystemClock(), images=[FAKE_IMAGE]))
        for index in range(pods):
            made = await target.runtime.create_pod(pod_spec(target, f"u{index}"))
            id = await target.runtime.create_container(container_spec(target, made, uid=f"u{index}"))
            await target.runtime.start_container(id)
        known = KnownContainers(
            target.runtime,
            SystemClock(),
            ownership=ownership(target.instance),
            pod_logs_dir=str(directory),
            pods_dir=str(directory),
            on_exit=lambda uid: None,
        )
        observer = Observer(target.runtime, SystemClock(), known)
        await relist(observer)
        return target, observer

    async def end(target: FakeTarget, observer: Observer) -> None:
        observer.close()
        await target.clean()

    with asyncio.Runner(loop_factory=SimLoop) as runner:  # which does in place what others do in threads
        target, observer = runner.run(prepare())
        found = work_of(lambda: runner.run(act(observer)))
        runner.run(end(target, observer))
    return found


def test_a_look_at_one_pod_is_as_much_work_beside_many(tmp_path: Path) -> None:
    few, many = (observation_with(pods, tmp_path, lambda observer: observer.observe("u1")) for pods in (FEW, MANY))
    assert as_much(few, many), (few, many)


def test_a_relist_is_as_much_work_per_pod_with_many(tmp_path: Path) -> None:
    few, many = (observation_with(pods, tmp_path, relist) // pods for pods in (FEW, MANY))
    assert as_much(few, many), (few, many)
