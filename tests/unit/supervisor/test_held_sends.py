"""Messages that go to a child at once, and those that wait until the files on which they rest are written."""

from __future__ import annotations

from ipc.link.messages.node_worker import DeleteVolume
from ipc.link.messages.pod_worker import CancelSync
from supervisor.held_sends import LONGEST_S, HeldSends
from supervisor.protocol.commands import NOTHING, RestsOn, Send


class Link:
    """Notes what is sent; versions of allocations up to ``written`` are on disk."""

    def __init__(self) -> None:
        self.written = 0
        self.sent: list[Send] = []
        self.sends = HeldSends(self.sent.append, lambda rests_on: rests_on.allocations <= self.written)

    def take(self, *commands: Send, now: float = 0.0) -> None:
        for command in commands:
            self.sends.take(command, now)


def about(uid: str, generation: int = 1, slot: int = 1, *, version: int = 0) -> Send:
    rests_on = RestsOn(allocations=version) if version else NOTHING
    return Send(slot, CancelSync(uid=uid, generation=generation), rests_on)


def test_what_rests_on_nothing_or_on_what_is_written_goes_at_once() -> None:
    link = Link()
    link.written = 3
    link.take(about("a"), about("b", version=3))
    assert link.sent == [about("a"), about("b", version=3)]
    assert not link.sends.is_waiting


def test_what_rests_on_more_waits_for_the_write_and_what_is_for_that_pod_comes_behind_in_its_order() -> None:
    link = Link()
    first, second, third = about("a", 1, version=2), about("a", 2), about("a", 3, version=1)
    link.take(first, second, third)
    assert link.sent == []
    link.written = 1
    link.sends.look(0.1)
    assert link.sent == []
    link.written = 2
    link.sends.look(0.2)
    assert link.sent == [first, second, third]
    assert not link.sends.is_waiting


def test_other_pods_other_children_and_what_is_about_no_pod_wait_for_nobody() -> None:
    link = Link()
    others = (about("b"), about("a", slot=2), Send(1, DeleteVolume(volume="v", path="/v")))
    link.take(about("a", version=1), Send(1, DeleteVolume(volume="w", path="/w"), RestsOn(allocations=1)), *others)
    assert link.sent == list(others)


def test_a_child_that_goes_away_takes_along_what_waits_for_it() -> None:
    link = Link()
    link.take(about("a", version=1), about("a", slot=2, version=1))
    link.sends.child_down(1)
    link.written = 1
    link.sends.look(0.1)
    assert link.sent == [about("a", slot=2, version=1)]


def test_a_disk_that_hangs_holds_nobody_up_for_long() -> None:
    link = Link()
    link.take(about("a", version=1), about("a", 2), now=10.0)
    link.sends.look(10.0 + LONGEST_S - 0.1)
    assert link.sent == []
    link.sends.look(10.0 + LONGEST_S)
    assert link.sent == [about("a", version=1), about("a", 2)]
