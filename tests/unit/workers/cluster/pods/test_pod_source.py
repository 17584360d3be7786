"""Pods of the server on their way to the master: at once, or when what they refer to was read."""

from __future__ import annotations

import asyncio

from ipc.api.v1.pod import Pod
from ipc.messages.cluster import PodsListed, PodStated, PodWithdrawn, ReferencesRead
from tests.fakes.clock import SimClock
from tests.unit.workers.cluster.pods.pods import known
from workers.cluster.pods.known_pod import KnownPod
from workers.cluster.pods.pod_source import Followed, PodSource, Statement
from workers.cluster.pods.status_manager import StatusManager


class NoMirrors:
    def known(self, uid: str, pod: KnownPod | None) -> None:
        raise AssertionError("there is no mirror")

    def listed(self) -> None:
        """There is none."""


class Way:
    """A source, and what the master was told."""

    def __init__(self) -> None:
        self.told: list[Statement] = []
        self.unread: dict[str, asyncio.Event] = {}
        """UIDs of pods that refer to something that was not read yet."""
        self.unfit: set[str] = set()
        """UIDs of pods that want labels which the node is not known to have."""
        self.source = PodSource(
            StatusManager(),
            NoMirrors(),
            SimClock(),
            self.told.append,
            self._follow,
            self._need,
            lambda _: None,
            lambda: None,
        )

    def _follow(self, pod: Pod) -> Followed:
        if pod.metadata.uid in self.unfit:
            return Followed.UNFIT
        return Followed.UNREAD if pod.metadata.uid in self.unread else Followed.READ

    async def _need(self, pod: Pod) -> None:
        await self.unread[pod.metadata.uid].wait()
        del self.unread[pod.metadata.uid]

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


async def test_a_pod_that_may_not_be_for_this_node_waits_until_that_is_known() -> None:
    way = Way()
    way.source.replaced([])
    await turns()
    way.unfit.add("u1")
    way.unread["u1"] = read = asyncio.Event()
    way.source.changed(known(1))
    await turns()
    assert way.stated() == []
    read.set()
    await turns()
    assert isinstance(way.told[-1], PodStated)
    assert not way.told[-1].awaits
    way.source.close()


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
