"""Background tasks: nothing that goes wrong in one stays unseen, and nothing outlives its owner."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import weakref
from typing import NoReturn

import pytest

from ipc.link.eventloop import tasks
from ipc.link.eventloop.tasks import (
    FAILURES,
    BackgroundTasks,
    FailureLog,
    first_error,
    first_of,
    restarted,
    to_the_end,
    with_progress,
)
from tests.fakes.clock import simulated


async def failing(error: BaseException) -> NoReturn:
    await asyncio.sleep(0)
    raise error


async def after(delay_s: float, value: str) -> str:
    await asyncio.sleep(delay_s)
    return value


@simulated
async def test_an_unexpected_error_is_counted_and_fails_what_depends_on_it() -> None:
    failed: list[BaseException] = []
    before = FAILURES.value
    error = ValueError("x")
    owner = BackgroundTasks(failed.append)
    owner.spawn(failing(error), name="a task")
    await asyncio.sleep(1.0)
    assert (failed, FAILURES.value - before, list(owner)) == ([error], 1, [])


@simulated
async def test_a_task_may_bring_what_is_to_fail_with_it() -> None:
    own: list[BaseException] = []
    others: list[BaseException] = []
    BackgroundTasks(others.append).spawn(failing(ValueError()), name="a task", on_failure=own.append)
    await asyncio.sleep(1.0)
    assert (len(own), others) == (1, [])


def test_an_unexpected_error_is_logged_with_its_name(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        BackgroundTasks().spawn(failing(ValueError("the reason")), name="the task")
        await asyncio.sleep(0.01)

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    (record,) = caplog.records
    assert record.getMessage() == "unexpected error in the task"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the reason"


@simulated
async def test_expected_errors_and_cancellation_are_no_failures() -> None:
    before = FAILURES.value
    owner = BackgroundTasks(lambda _: pytest.fail("nothing has failed"))
    expected = owner.spawn(failing(KeyError()), name="a", expected=(KeyError,))
    cancelled = owner.spawn(after(100.0, ""), name="b")
    await asyncio.sleep(1.0)
    cancelled.cancel()
    await asyncio.sleep(1.0)
    with pytest.raises(KeyError):
        await expected
    assert (cancelled.cancelled(), FAILURES.value, list(owner)) == (True, before, [])


@simulated
async def test_a_task_that_is_cancelled_by_nobody_has_failed() -> None:
    """A task that it awaited was cancelled, by whoever shared that with it."""
    failed: list[BaseException] = []
    shared: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def waits() -> None:
        await asyncio.shield(shared)

    BackgroundTasks(failed.append).spawn(waits(), name="a task")
    await asyncio.sleep(1.0)
    shared.cancel()
    await asyncio.sleep(1.0)
    assert [type(error) for error in failed] == [asyncio.CancelledError]


@simulated
async def test_closing_waits_until_everything_has_cleaned_up() -> None:
    cleaned: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(100.0)
        finally:
            await asyncio.sleep(1.0)
            cleaned.append("yes")

    owner = BackgroundTasks()
    owner.spawn(work(), name="work")
    await asyncio.sleep(1.0)
    await owner.close()
    assert cleaned == ["yes"]


# --- again ---


@simulated
async def test_what_fails_is_begun_again_after_pauses_that_grow_to_a_maximum() -> None:
    began: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> str:
        began.append(loop.time())
        if len(began) < 12:
            raise ValueError("again")
        return "done"

    assert await restarted(work, name="work") == "done"
    pauses = [round(later - earlier, 3) for earlier, later in itertools.pairwise(began)]
    assert pauses[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert set(pauses[6:]) == {tasks.RESTARTS.max_s}


@simulated
async def test_one_that_has_run_for_long_is_begun_again_soon() -> None:
    began: list[float] = []
    loop = asyncio.get_running_loop()

    async def work() -> None:
        began.append(loop.time())
        if len(began) == 6:
            return
        if len(began) == 4:
            await asyncio.sleep(2 * tasks.RESTARTS.max_s)
        raise ValueError

    await restarted(work, name="work")
    assert round(began[4] - began[3] - 2 * tasks.RESTARTS.max_s, 3) == tasks.RESTARTS.initial_s


def test_the_same_error_in_a_row_is_logged_once_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    failures, before = FailureLog("a probe"), FAILURES.value
    with caplog.at_level(logging.ERROR):
        news = [failures.note(ValueError("x")) for _ in range(3)] + [failures.note(ValueError("y"))]
        failures.succeeded()
        news.append(failures.note(ValueError("y")))
    assert news == [True, False, False, True, True]
    assert (len(caplog.records), FAILURES.value - before) == (3, 5)


# --- several at a time ---


@simulated
async def test_the_first_wins_and_the_others_have_cleaned_up() -> None:
    cleaned: list[str] = []

    async def loser() -> str:
        try:
            return await after(100.0, "slow")
        finally:
            await asyncio.sleep(1.0)
            cleaned.append("loser")

    assert await first_of(loser(), after(1.0, "quick")) == "quick"
    assert cleaned == ["loser"]


@simulated
async def test_of_several_at_once_the_leftmost_wins() -> None:
    assert await first_of(after(1.0, "left"), after(1.0, "right")) == "left"


@simulated
async def test_an_error_may_come_first() -> None:
    with pytest.raises(KeyError):
        await first_of(after(1.0, "late"), failing(KeyError()))


@simulated
async def test_an_error_that_came_first_leaves_no_cycle() -> None:
    class Failure(Exception):
        pass

    async def fails() -> NoReturn:
        raise Failure

    async def race() -> weakref.ref[Failure]:
        try:
            await first_of(after(1.0, "late"), fails())
        except Failure as failure:
            return weakref.ref(failure)
        raise AssertionError

    gc.disable()
    try:
        known = await race()
        await asyncio.sleep(1.0)  # the loop lets go of the task's last step
        assert known() is None
    finally:
        gc.enable()


@simulated
async def test_whoever_races_may_be_cancelled_and_so_are_all() -> None:
    ended: list[str] = []

    async def runner() -> str:
        try:
            return await after(100.0, "")
        finally:
            ended.append("runner")

    race = asyncio.ensure_future(first_of(runner(), runner()))
    await asyncio.sleep(1.0)
    race.cancel()
    with pytest.raises(asyncio.CancelledError):
        await race
    assert ended == ["runner", "runner"]


@simulated
async def test_progress_is_told_after_each_pause_until_the_end() -> None:
    loop = asyncio.get_running_loop()
    began_at, told = loop.time(), []

    async def tell() -> None:
        told.append(round(loop.time() - began_at, 3))

    assert await with_progress(after(10.0, "done"), tell, (2.0**number for number in range(9))) == "done"
    assert told == [1.0, 3.0, 7.0]


@simulated
async def test_what_must_come_to_its_end_does_so_before_its_caller_is_cancelled() -> None:
    ended: list[str] = []

    async def work() -> None:
        await asyncio.sleep(5.0)
        ended.append("work")

    caller = asyncio.ensure_future(to_the_end(work()))
    await asyncio.sleep(1.0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == ["work"]


def test_the_first_error_of_nested_groups() -> None:
    inner = ValueError("inner")
    assert first_error(ExceptionGroup("a", [ExceptionGroup("b", [inner]), KeyError()])) is inner
    assert first_error(inner) is inner
