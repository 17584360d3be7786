"""Counters of pods."""

from __future__ import annotations

from workers.stats.groups import NOTHING, Figures, GroupAccount, memory_of
from workers.statsapi.values import Memory, Source

A, B = Figures(10, 6, 4, 3, 0), Figures(5, 3, 2, 1, 1)


def test_a_sum() -> None:
    assert GroupAccount().add({"a": A, "b": B}) == Figures(15, 9, 6, 4, 1)


def test_a_member_that_has_gone_goes_on_counting() -> None:
    group = GroupAccount()
    group.add({"a": A, "b": B})
    assert group.add({"a": A}) == Figures(15, 9, 6, 4, 1)
    assert group.add({"a": A, "c": B}) == Figures(20, 12, 8, 5, 2)


def test_a_figure_that_a_member_lacks_is_lacking() -> None:
    group = GroupAccount()
    assert group.add({"a": A, "b": Figures(usage_ns=1)}) == Figures(usage_ns=11)
    assert group.add({"a": A}).usage_ns == 11, "and is there again without that member"


def test_a_group_goes_on_from_what_was_told_before() -> None:
    before = Figures(100, 60, 40, 30, 1)
    assert GroupAccount({"a": A}, before).add({"a": A}) == before
    assert GroupAccount({"a": A}, before).add({}) == before


def test_an_empty_group_has_used_nothing() -> None:
    assert GroupAccount().add({}) == NOTHING


def test_sizes_that_not_all_know_are_not_known() -> None:
    one = Memory(source=Source.CGROUP, time=1.0, usage=5, rss=2)
    other = Memory(source=Source.PROCESSES, time=1.0, usage=3)
    found = memory_of(NOTHING, [one, other], 2.0)
    assert (found.usage, found.rss) == (8, None)
    assert memory_of(NOTHING, [one, None], 2.0).usage is None
