"""GET /debug/pprof/{name}: profiles of the API server's own process (net/http/pprof).

Different on purpose: pprof's binary format is Go's. CPU is sampled while somebody asks, and given as collapsed stacks,
which flame graph tools and speedscope read; memory is tracemalloc's table. The times of all processes: `rootlet trace`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
import tracemalloc
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

from aiohttp import web

from ipc.host.clock import monotonic
from workers.api_server.core.query import flag, integer
from workers.api_server.core.route import plain_text
from workers.api_server.core.status_errors import ApiError

SECONDS: Final = 30
MAX_SECONDS: Final = 300
PERIOD_S: Final = 0.01
"""Between two samples: a hundred a second, as Go's."""
MAX_LINES: Final = 200
"""Most lines of the heap's table."""
UNKNOWN: Final = "Unknown profile\n"


class Profiles:
    """The handler."""

    def __init__(self) -> None:
        self._is_sampling = False
        self._handlers = {
            "cmdline": self._cmdline,
            "profile": self._profile,
            "heap": self._heap,
            "goroutine": self._tasks,
        }

    async def get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if not name:
            return plain_text(404, "404: Page Not Found")
        handler = self._handlers.get(name)
        if handler is None:
            raise ApiError(404, UNKNOWN)
        return await handler(request)

    async def _cmdline(self, _request: web.Request) -> web.Response:
        return plain_text(200, _command_line())

    async def _profile(self, request: web.Request) -> web.Response:
        """Collapsed stacks of all threads over ``seconds``. One at a time."""
        seconds = integer(request.query, "seconds", low=1, high=MAX_SECONDS) or SECONDS
        if self._is_sampling:
            raise ApiError(500, "Could not enable CPU profiling: cpu profiling already in use\n")
        self._is_sampling = True
        stop = threading.Event()
        try:
            stacks = await asyncio.to_thread(sample, seconds, stop)
        finally:
            stop.set()
            self._is_sampling = False
        return plain_text(200, "".join(f"{stack} {count}\n" for stack, count in stacks.most_common()))

    async def _heap(self, request: web.Request) -> web.Response:
        """Where memory was asked for, since ``?start=true``; ``?stop=true`` ends the tracing, which costs a quarter of
        the speed."""
        if flag(request.query, "start"):
            tracemalloc.start()
            return plain_text(200, "tracing allocations of the API server\n")
        if not tracemalloc.is_tracing():
            raise ApiError(400, "allocations are not traced: ask for ?start=true first\n")
        if flag(request.query, "stop"):
            tracemalloc.stop()
            return plain_text(200, "no longer tracing\n")
        return plain_text(200, await asyncio.to_thread(heap_table))

    async def _tasks(self, _request: web.Request) -> web.Response:
        """Stacks of all tasks: what goroutines are in Go."""
        tasks = asyncio.all_tasks()
        shown = (f"{task.get_name()}\n{''.join(traceback.format_list(_stack(task)))}\n" for task in tasks)
        return plain_text(200, f"task profile: total {len(tasks)}\n" + "".join(shown))


def sample(seconds: float, stop: threading.Event) -> Counter[str]:
    """Stacks, outermost call first, and how often each was seen. Ends early when ``stop`` is set."""
    own, until, stacks = threading.get_ident(), monotonic() + seconds, Counter[str]()
    while not stop.wait(PERIOD_S) and monotonic() < until:
        for thread, frame in sys._current_frames().items():
            if thread != own:
                stacks[collapsed(frame)] += 1
    return stacks


def collapsed(frame: FrameType | None) -> str:
    """One stack as flame graph tools read it: ``main;serve;read``."""
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names))


def _command_line() -> str:
    return Path("/proc/self/cmdline").read_text(errors="replace").rstrip("\0")


def heap_table() -> str:
    """The lines that hold most of the memory that is traced."""
    statistics = tracemalloc.take_snapshot().statistics("lineno")
    held = sum(each.size for each in statistics)
    return f"heap profile: {held} bytes\n" + "".join(f"{each}\n" for each in statistics[:MAX_LINES])


def _stack(task: asyncio.Task[object]) -> traceback.StackSummary:
    return traceback.StackSummary.extract((frame, frame.f_lineno) for frame in task.get_stack())
