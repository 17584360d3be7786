"""Pods of the server on their way to the master: at once, or when what they refer to was read."""

from __future__ import annotations

import asyncio

from ipc.k8s.api.v1.pod import Pod
from ipc.link.messages.cluster import PodsListed, PodStated, PodWithdrawn, ReferencesRead
from tests.fakes.clock import SimClock
from tests.unit.workers.cluster.pods.pods import known
from workers.cluster.pods.known_pod import KnownPod
from workers.cluster.pods.pod_source import PodSource, Statement
from workers.cluster.pods.status_manager import StatusManager


class NoMirrors:
    def known(self, uid: str, pod: KnownPod | None) -> None:
        raise AssertionError("there is no mirror")

    def listed(self) -> None:
        """There is none."""


class Needs:
    """Needs of pods, as the test says them."""

    def __init__(self) -> None:
        self.unread: dict[str, asyncio.Event] = {}
        """UIDs of pods that refer to something that was not read yet."""
        self.unfit: dict[str, asyncio.Event] = {}
        """UIDs of pods that want labels which the node is not known to have before it is read again."""
        self.followed: list[tuple[str, bool]] = []
        """UIDs, and whether nobody has decided about the pod."""

    def fits(self, pod: Pod) -> bool:
        return pod.metadata.uid not in self.unfit

    async def see_node(self) -> None:
        for seen in self.unfit.values():
            await seen.wait()

    def follow(self, pod: Pod, *, is_new: bool) -> bool:
        self.followed.append((pod.metadata.uid, is_new))
        return pod.metadata.uid not in self.unread

    async def need(self, pod: Pod) -> None:
        await self.unread[pod.metadata.uid].wait()
        del self.unread[pod.metadata.uid]

    def forget(self, uid: str) -> None:
        """Nothing is remembered."""


class Way:
    """A source, and what the master was told."""

    def __init__(self) -> None:
        self.told: list[Statement] = []
        self.needs = Needs()
        self.unread = self.needs.unread
        self.source = PodSource(
            StatusManager(), NoMirrors(), self.needs, SimClock(), self.told.append, lambda: None, lambda: None
        )

    def stated(self) -> list[tuple[str, str]]:
        """UID and version of each pod that went up, in order."""
        pods = (each.pod.metadata for each in self.told if isinstance(each, PodStated))
        return [(metadata.uid, metadata.resource_version) for metadata in pods]


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def test_a_pod_that_waits_for_nothing_goes_up_before_the_next_one_is_looked_at() -> None:
    way = Way()
    way.source.changed(known(1))
    assert way.stated() == [("u1", "1")]
    way.source.changed(known(2, labels={"a": "b"}))
    assert way.stated() == [("u1", "1"), ("u1", "2")]


async def test_a_pod_goes_up_at_once_and_then_that_all_it_refers_to_was_read() -> None:
    way = Way()
    way.source.replaced([])
    await turns()
    way.unread["u1"] = read = asyncio.Event()
    way.source.changed(known(1))
    assert isinstance(way.told[-1], PodStated)
    assert way.told[-1].awaits
    way.source.changed(known(2, labels={"a": "b"}))
    await turns()
    assert way.stated() == [("u1", "1")], "its newest version follows"
    read.set()
    await turns()
    assert way.told[-2] == ReferencesRead(uid="u1")
    assert way.stated() == [("u1", "1"), ("u1", "2")]
    assert not any(each.awaits for each in way.told[-1:] if isinstance(each, PodStated))
    way.source.close()


async def test_a_pod_that_may_not_be_for_this_node_waits_until_the_node_was_read_again() -> None:
    way = Way()
    way.source.replaced([])
    await turns()
    way.needs.unfit["u1"] = seen = asyncio.Event()
    way.unread["u1"] = read = asyncio.Event()
    way.source.changed(known(1))
    await turns()
    assert way.stated() == []
    assert way.needs.followed == [], "nothing is asked for a pod that may be another node's"
    seen.set()
    await turns()
    assert [each.awaits for each in way.told if isinstance(each, PodStated)] == [True]
    read.set()
    await turns()
    assert way.told[-1] == ReferencesRead(uid="u1")
    way.source.close()


async def test_a_pod_of_the_list_that_wants_other_labels_goes_up_before_the_list_has_ended() -> None:
    way = Way()
    way.needs.unfit["u1"] = seen = asyncio.Event()
    way.unread["u1"] = read = asyncio.Event()
    way.source.replaced([known(1)])
    seen.set()
    await turns()
    assert way.told == [], "what is known of an earlier agent counts"
    read.set()
    await turns()
    assert [type(each) for each in way.told] == [PodStated, PodsListed]
    way.source.close()


async def test_nobody_has_decided_about_a_pod_that_comes_after_the_list() -> None:
    way = Way()
    way.source.replaced([known(1)])
    await turns()
    way.source.changed(known(2, uid="u2"))
    way.source.changed(known(3, uid="u2", labels={"a": "b"}))
    assert way.needs.followed == [("u1", False), ("u2", True), ("u2", False)]


async def test_a_pod_that_goes_while_its_sync_may_wait_is_withdrawn() -> None:
    way = Way()
    way.source.replaced([])
    await turns()
    way.unread["u1"] = read = asyncio.Event()
    way.source.changed(known(1))
    way.source.deleted(known(1))
    read.set()
    await turns()
    assert way.told[-1] == PodWithdrawn(uid="u1")


async def test_a_pod_of_the_list_waits_for_what_it_refers_to_and_its_newest_version_follows() -> None:
    way = Way()
    way.unread["u1"] = asyncio.Event()
    read = way.unread["u1"]
    way.source.changed(known(1))
    way.source.changed(known(1, uid="u2"))
    way.source.changed(known(2, labels={"a": "b"}))
    await turns()
    assert way.stated() == [("u2", "1")], "others do not wait for it"
    read.set()
    await turns()
    assert way.stated() == [("u2", "1"), ("u1", "1"), ("u1", "2")]
    way.source.close()


async def test_a_list_has_ended_when_its_last_pod_went_up() -> None:
    way = Way()
    way.unread["u1"] = asyncio.Event()
    read = way.unread["u1"]
    way.source.replaced([known(1), known(1, uid="u2")])
    await turns()
    assert not any(isinstance(each, PodsListed) for each in way.told)
    read.set()
    await turns()
    assert way.told[-1] == PodsListed()
    assert sorted(way.stated()) == [("u1", "1"), ("u2", "1")]


async def test_a_pod_that_goes_while_it_waits_never_goes_up() -> None:
    way = Way()
    way.unread["u1"] = asyncio.Event()
    read = way.unread["u1"]
    way.source.changed(known(1))
    await turns()
    way.source.deleted(known(1))
    read.set()
    await turns()
    assert way.told == []
    way.source.changed(known(3, uid="u2"))
    way.source.deleted(known(3, uid="u2"))
    assert way.told[-1] == PodWithdrawn(uid="u2")
