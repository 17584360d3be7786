"""Profiles of the process that this runs in: sampled stacks, traced allocations, tasks (net/http/pprof).

Different on purpose: pprof's binary format is Go's. CPU is sampled while somebody waits, and given as collapsed stacks,
which flame graph tools and speedscope read; memory is tracemalloc's table.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from ipc.host.clock import monotonic

PERIOD_S: Final = 0.01
"""Between two samples: a hundred a second, as Go's."""
MAX_STACKS: Final = 5_000
"""Most different stacks of one profile; further ones count as ``MORE``."""
MORE: Final = "(more)"
MAX_LINES: Final = 200
"""Most lines of the heap's table."""
MAX_CHARS: Final = 2 * 1024 * 1024
"""Longest text of a profile: less than a frame of a link when each character has three bytes."""
TRACING_S: Final = 600.0
"""Allocations are traced for so long, in seconds, unless somebody ends it: it costs a quarter of the speed."""


class Taken(NamedTuple):
    """A profile, or why there is none."""

    code: int
    """HTTP status."""
    text: str


class Profiler:
    """Takes profiles, of stacks one at a time. For the loop of its process."""

    def __init__(self) -> None:
        self._is_sampling = False
        self._tracing_ends: asyncio.TimerHandle | None = None
        self._profiles: Final[Mapping[str, Callable[[int, str], Awaitable[Taken]]]] = {
            "cmdline": self._command_line,
            "profile": self._stacks,
            "heap": self._heap,
            "goroutine": self._tasks,
        }

    async def take(self, profile: str, seconds: int, action: str) -> Taken:
        """``seconds``: how long stacks are sampled. ``action``: ``start`` or ``stop`` the tracing of allocations."""
        taken = self._profiles.get(profile)
        if taken is None:
            return Taken(404, "Unknown profile\n")
        code, text = await taken(seconds, action)
        return Taken(code, text[:MAX_CHARS])

    async def _command_line(self, _seconds: int, _action: str) -> Taken:
        return Taken(200, command_line())

    async def _stacks(self, seconds: int, _action: str) -> Taken:
        """Collapsed stacks of all threads."""
        if self._is_sampling:
            return Taken(500, "Could not enable CPU profiling: cpu profiling already in use\n")
        self._is_sampling = True
        stop = threading.Event()
        try:
            stacks = await asyncio.to_thread(sample, seconds, stop)
        finally:
            stop.set()
            self._is_sampling = False
        return Taken(200, "".join(f"{stack} {count}\n" for stack, count in stacks.most_common()))

    async def _heap(self, _seconds: int, action: str) -> Taken:
        """Where the memory was asked for that is held and was asked for since the start of the tracing."""
        import tracemalloc  # with pickle; few processes are ever asked

        if action == "start":
            self._trace_allocations()
            return Taken(200, f"tracing allocations of this process for {TRACING_S:.0f} s\n")
        if not tracemalloc.is_tracing():
            return Taken(400, "allocations are not traced: ask for ?start=true first\n")
        if action == "stop":
            tracemalloc.stop()
            return Taken(200, "no longer tracing\n")
        return Taken(200, await asyncio.to_thread(heap_table))

    def _trace_allocations(self) -> None:
        import tracemalloc

        if self._tracing_ends is not None:
            self._tracing_ends.cancel()
        tracemalloc.start()
        self._tracing_ends = asyncio.get_running_loop().call_later(TRACING_S, tracemalloc.stop)

    async def _tasks(self, _seconds: int, _action: str) -> Taken:
        """Stacks of all tasks: what goroutines are in Go."""
        tasks = asyncio.all_tasks()
        shown = (f"{task.get_name()}\n{''.join(traceback.format_list(_stack(task)))}\n" for task in tasks)
        return Taken(200, f"task profile: total {len(tasks)}\n" + "".join(shown))


def command_line() -> str:
    """Arguments of this process, a NUL after each but the last."""
    return Path("/proc/self/cmdline").read_text(errors="replace").rstrip("\0")


def sample(seconds: float, stop: threading.Event) -> Counter[str]:
    """Stacks, outermost call first, and how often each was seen. Ends early when ``stop`` is set."""
    own, until, stacks = threading.get_ident(), monotonic() + seconds, Counter[str]()
    while not stop.wait(PERIOD_S) and monotonic() < until:
        for thread, frame in sys._current_frames().items():
            if thread != own:
                stack = collapsed(frame)
                stacks[stack if stack in stacks or len(stacks) < MAX_STACKS else MORE] += 1
    return stacks


def collapsed(frame: FrameType | None) -> str:
    """One stack as flame graph tools read it: ``main;serve;read``."""
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names))


def heap_table() -> str:
    """The lines that hold most of the memory that is traced."""
    import tracemalloc

    statistics = tracemalloc.take_snapshot().statistics("lineno")
    held = sum(each.size for each in statistics)
    return f"heap profile: {held} bytes\n" + "".join(f"{each}\n" for each in statistics[:MAX_LINES])


def _stack(task: asyncio.Task[object]) -> traceback.StackSummary:
    return traceback.StackSummary.extract((frame, frame.f_lineno) for frame in awaiting(task))


def awaiting(task: asyncio.Task[object]) -> Iterator[FrameType]:
    """Frames of a task, outermost call first: each awaits the next, where ``Task.get_stack`` has the first alone."""
    waits: object = task.get_coro()
    while (frame := getattr(waits, "cr_frame", None) or getattr(waits, "gi_frame", None)) is not None:
        yield frame
        waits = getattr(waits, "cr_await", None) or getattr(waits, "gi_yieldfrom", None)
