"""Profiles of this process: what they hold, and their bounds."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Iterator

import pytest

from ipc.host.process import profiles
from ipc.host.process.profiles import MORE, Profiler, sample


@pytest.fixture(autouse=True)
def not_tracing() -> Iterator[None]:
    yield
    tracemalloc.stop()


def deep(levels: int, wait: threading.Event) -> None:
    if levels:
        deep(levels - 1, wait)
    else:
        wait.wait()


def test_stacks_begin_with_the_outermost_call() -> None:
    wait, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=deep, args=(3, wait))
    thread.start()
    try:
        stacks = sample(0.1, stop)
    finally:
        wait.set()
        thread.join()
    (found,) = (stack for stack in stacks if "test_profiles.deep" in stack)
    assert ";".join(["test_profiles.deep"] * 4) in found
    assert found.startswith("threading.")


def test_the_number_of_different_stacks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MAX_STACKS", 0)
    assert set(sample(0.05, threading.Event())) <= {MORE}


async def test_an_unknown_profile() -> None:
    assert (await Profiler().take("mutex", 1, "")).code == 404


async def test_a_task_is_shown_to_the_call_that_waits() -> None:
    async def inner() -> None:
        await asyncio.Event().wait()

    async def outer() -> None:
        await inner()

    task = asyncio.create_task(outer(), name="the waiting one")
    await asyncio.sleep(0)
    _, text = await Profiler().take("goroutine", 1, "")
    task.cancel()
    shown = text.partition("the waiting one\n")[2].partition("\n\n")[0]
    assert [line.rpartition(" in ")[2] for line in shown.splitlines() if " in " in line] == ["outer", "inner", "wait"]


async def test_a_long_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "MAX_CHARS", 10)
    code, text = await Profiler().take("goroutine", 1, "")
    assert (code, text) == (200, "task profi")


async def test_tracing_of_allocations_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "TRACING_S", 0.01)
    await Profiler().take("heap", 1, "start")
    assert tracemalloc.is_tracing()
    ended = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, ended.set)  # later than the profiler's own timer of the same loop
    await ended.wait()
    assert not tracemalloc.is_tracing()
