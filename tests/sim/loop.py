"""Simulated time in which every task belongs to somebody."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from tests.fakes.clock import SimLoop

T = TypeVar("T")


class Owner(Protocol):
    """Owner of tasks, so that they can die with it."""

    tasks: dict[asyncio.Task[Any], None]


OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("OWNER", default=None)
"""Set in the context of everything that a child of the simulated agent does."""
NOBODY = contextvars.Context()
"""For callbacks that belong to the world and not to whoever happened to cause them."""


class SingleLoop(SimLoop):
    """A SimLoop that notes tasks with their owners, in the order of their making."""

    def __init__(self) -> None:
        super().__init__()
        self.set_task_factory(_make_task)  # type: ignore[arg-type]


def _make_task(loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
    context: contextvars.Context | None = options.get("context")
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
    owner = OWNER.get() if context is None else context.get(OWNER)
    if owner is not None:
        owner.tasks[task] = None
        task.add_done_callback(lambda done: owner.tasks.pop(done, None))
    return task


def run_alone(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function to its end in simulated time, without threads."""
    with asyncio.Runner(loop_factory=SingleLoop) as runner:
        return runner.run(main())
