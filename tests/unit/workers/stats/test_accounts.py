"""Counters that are added up from processes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.stats.accounts import NOTHING, Counters, Process, ProcessAccount

MAIN, CHILD, EXECUTED = 10, 11, 50


def process(pid: int, ticks: int, parent: int = 1, start: int = 1) -> Process:
    return Process(pid=pid, start_ticks=start, parent=parent, threads=1, counters=Counters(user_ticks=ticks))


def ticks(account: ProcessAccount, *processes: Process) -> int:
    return account.add(processes).user_ticks


def test_the_sum_of_all_that_live() -> None:
    assert ticks(ProcessAccount(), process(MAIN, 5), process(CHILD, 3, MAIN)) == 8


def test_a_child_that_was_waited_for_is_in_its_parents_counters() -> None:
    account = ProcessAccount()
    account.add([process(MAIN, 5), process(CHILD, 3, MAIN)])
    assert ticks(account, process(MAIN, 9)) == 9, "3 of its child's, and 1 more"


def test_children_that_nobody_saw_count() -> None:
    account = ProcessAccount()
    account.add([process(MAIN, 5)])
    assert ticks(account, process(MAIN, 500)) == 500


def test_an_executed_command_goes_on_counting_after_its_end() -> None:
    account = ProcessAccount()
    account.add([process(MAIN, 5), process(EXECUTED, 7, parent=999)])
    assert ticks(account, process(MAIN, 5)) == 12
    assert ticks(account, process(MAIN, 6)) == 13


def test_a_command_that_ends_with_its_children_counts_with_all() -> None:
    account = ProcessAccount()
    account.add([process(MAIN, 5), process(EXECUTED, 7, parent=999), process(51, 2, EXECUTED)])
    assert ticks(account, process(MAIN, 5)) == 14


def test_a_child_whose_end_is_ignored_lets_the_counter_stand_still() -> None:
    account = ProcessAccount()
    account.add([process(MAIN, 5), process(CHILD, 100, MAIN)])
    assert ticks(account, process(MAIN, 6)) == 105
    assert ticks(account, process(MAIN, 8)) == 107, "and from there on it rises as its processes' do"


def test_a_pid_that_passes_to_another_process_is_another_process() -> None:
    account = ProcessAccount()
    account.add([process(MAIN, 5), process(EXECUTED, 7, parent=999)])
    assert ticks(account, process(MAIN, 5), process(EXECUTED, 1, parent=999, start=2)) == 13


def test_counters_go_on_from_what_was_told_before() -> None:
    assert ticks(ProcessAccount(Counters(user_ticks=50)), process(MAIN, 5)) == 50


def test_processes_that_are_their_own_ancestors_end_the_search() -> None:
    account = ProcessAccount()
    account.add([process(MAIN, 5, parent=CHILD), process(CHILD, 3, parent=MAIN)])
    assert account.add([]).user_ticks == 8


rounds = st.lists(
    st.dictionaries(st.integers(2, 6), st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(1, 6)), max_size=4),
    max_size=6,
)


@given(rounds)
def test_whatever_the_processes_do_no_counter_falls(states: list[dict[int, tuple[int, int, int]]]) -> None:
    account, before = ProcessAccount(), NOTHING
    for state in states:
        processes = [process(pid, ticks, parent, start) for pid, (start, ticks, parent) in state.items()]
        after = account.add(processes)
        assert all(new >= old for old, new in zip(before, after, strict=True))
        before = after
