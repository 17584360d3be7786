"""Looks at the logs of running containers, and has those rotated that are too large.

Mirrors pkg/kubelet/logs/container_log_manager.go. Different on purpose: a log to which nothing was written is not
looked at (`workers.fs.growth_watch`), one that grows fast is looked at before the interval is over, and older files are
compressed beside rotations, by threads of low priority.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Never

import msgspec

from ipc.host.clock import Clock
from ipc.host.regular_files import open_regular_file
from ipc.k8s.kubecontainer.log_rotate_policy import LogRotatePolicy
from ipc.k8s.kubecontainer.pod_status import ContainerState, RuntimeContainerStatus, RuntimePodStatus
from ipc.link.eventloop.tasks import BackgroundTasks
from workers.fs.directories import is_name
from workers.fs.fs_executor import FsExecutor
from workers.fs.growth_watch import GrowthWatch
from workers.logs import layout
from workers.logs.rotate import Rotated, Unconfirmed, compress_older, rotate
from workers.podman_files.monitor_control import monitor_control

LEAST_PAUSE_S: Final = 1.0
"""Between two looks at a log, however fast it grows: names of rotated logs count seconds."""
LOOKS_PER_YIELD: Final = 100
"""Logs that are looked at before other tasks of the process run."""
NICENESS: Final = 10
"""Added to that of this process, for threads that compress."""

log = logging.getLogger(__name__)


class _Log(msgspec.Struct):
    """The log of a running container, as it was at the last look."""

    container_id: str
    path: str
    was_running: bool
    """The container was there before this process."""
    inode: int = 0
    size: int = 0
    looked_at: float = -math.inf
    """Monotonic seconds, as the next one."""
    next_look: float = -math.inf
    unconfirmed: Unconfirmed | None = None
    was_signalled: bool = False
    """The monitor was told to go over to another file."""
    is_rotating: bool = False
    to_compress: bool = False
    is_compressing: bool = False
    problem: str = ""
    """Told last."""


class _Look:
    """A look at a file in threads. It may be closed before it is open: then it is closed as soon as it is."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._is_over = False
        self.fd = -1

    def open(self) -> None:
        """Raises OSError. Waits for the file system, as `measured` does."""
        fd = open_regular_file(self._path, os.O_RDONLY | os.O_NOFOLLOW)
        with self._lock:
            if not self._is_over:
                self.fd = fd
                return
        os.close(fd)

    def measured(self) -> tuple[int, int]:
        """Inode and size of the file that was opened. Raises OSError."""
        found = os.fstat(self.fd)
        return found.st_ino, found.st_size

    def close(self) -> None:
        with self._lock:
            self._is_over = True
            fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class ContainerLogManager:
    """The node worker's task of container logs. Belongs to one loop."""

    def __init__(
        self, pod_logs_dir: str, policy: LogRotatePolicy, monitor_of: Callable[[str], int], clock: Clock
    ) -> None:
        """``monitor_of``: pid of the monitor of a container, by its id; 0 when it is not known."""
        self._pod_logs_dir = pod_logs_dir
        self._policy = policy
        self._monitor_of = monitor_of
        self._clock = clock
        self._began_at = clock.now().wall
        self._logs: dict[str, _Log] = {}
        """By container id."""
        self._of_pods: dict[str, tuple[str, ...]] = {}
        """Container ids by uid."""
        self._due: dict[str, float] = {}
        """By container id: when it is looked at, in monotonic seconds. Of logs that have grown or are in motion."""
        self._queue: list[tuple[float, str]] = []
        """A heap of these, and of others that count no more."""
        self._wake = asyncio.Event()
        self._watch: GrowthWatch | None = None
        self._tasks = BackgroundTasks()
        self._stopping = threading.Event()
        self._rotators = ThreadPoolExecutor(1, thread_name_prefix="rotate")
        self._compressors = self._make_compressors()
        self._files = FsExecutor()

    # --- which logs there are ---

    def follow(self, status: RuntimePodStatus) -> None:
        """A pod's status has changed: these of its containers run."""
        running = {container.id: container for container in status.containers if _runs(container)}
        for id in self._of_pods.pop(status.uid, ()):
            if id not in running:
                self._forget(id)
        for id in running.keys() - self._logs.keys():
            self._begin(status, running[id])
        if running:
            self._of_pods[status.uid] = tuple(running)

    def set_policy(self, policy: LogRotatePolicy) -> None:
        """Rotate by another policy from now on."""
        if policy == self._policy:
            return
        self._policy = policy
        before, self._compressors = self._compressors, self._make_compressors()
        before.shutdown(wait=False)
        self._look_at_all()

    def _begin(self, status: RuntimePodStatus, container: RuntimeContainerStatus) -> None:
        if not all(map(is_name, (status.uid, status.name, status.namespace, container.name))):
            return
        directory = layout.pod_directory(self._pod_logs_dir, status.namespace, status.name, status.uid)
        path = layout.log_file(directory, container.name, container.attempt)
        was_running = container.started_at < self._began_at
        self._logs[container.id] = _Log(container.id, str(path), was_running=was_running)
        self._look_at(container.id, -math.inf)

    def _forget(self, id: str) -> None:
        self._logs.pop(id, None)
        self._due.pop(id, None)
        if self._watch is not None:
            self._watch.disarm(id)

    # --- looks ---

    async def run(self) -> Never:
        """Rotate logs that are due, for ever."""
        try:
            self._watch = GrowthWatch(self._grown)
        except OSError as error:
            log.warning("container logs are looked at every %g s: %s", self._policy.monitor_interval_s, error)
        self._look_at_all()
        try:
            while True:
                await self._until_due()
                for _ in range(LOOKS_PER_YIELD):
                    if self._next_due() > (now := self._now()):
                        break
                    _, id = heapq.heappop(self._queue)
                    del self._due[id]
                    if self._policy.rotates and (known := self._logs.get(id)) is not None:
                        await self._look(known, now)
                await asyncio.sleep(0)
        finally:
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    async def close(self) -> None:
        """Break off what is under way; it goes on in the next incarnation."""
        self._stopping.set()
        await self._tasks.close()
        self._files.close()
        for threads in (self._rotators, self._compressors):
            threads.shutdown(wait=False, cancel_futures=True)

    async def _until_due(self) -> None:
        self._wake.clear()
        if (next_due := self._next_due()) <= (now := self._now()):
            return
        try:
            async with asyncio.timeout(None if math.isinf(next_due) else next_due - now):
                await self._wake.wait()
        except TimeoutError:
            return

    def _next_due(self) -> float:
        """Monotonic seconds; infinite when nothing is."""
        while self._queue and self._due.get(self._queue[0][1]) != self._queue[0][0]:
            heapq.heappop(self._queue)
        return self._queue[0][0] if self._queue else math.inf

    def _look_at(self, id: str, at: float) -> None:
        """At that time in monotonic seconds, unless an earlier one is due."""
        if at >= self._due.get(id, math.inf):
            return
        self._due[id] = at
        heapq.heappush(self._queue, (at, id))
        if self._queue[0] == (at, id):
            self._wake.set()

    def _look_at_all(self) -> None:
        for id in self._logs:
            self._look_at(id, -math.inf)

    def _grown(self, id: Hashable) -> None:
        assert isinstance(id, str)
        if (known := self._logs.get(id)) is not None:
            self._look_at(id, known.next_look)

    async def _look(self, known: _Log, now: float) -> None:
        """One descriptor and one fstat, in a thread: somebody may have put a file system there that does not answer."""
        look, next_look = _Look(known.path), now + self._policy.monitor_interval_s
        before = known.inode, known.size
        try:
            await self._files.run_unless_hung(known.path, look.open)
            if self._logs.get(known.container_id) is not known:
                return  # it was forgotten meanwhile
            self._arm(known, look.fd)
            known.inode, known.size = await self._files.run_unless_hung(known.path, look.measured)
        except OSError as error:
            if self._logs.get(known.container_id) is not known:
                return
            self._look_at(known.container_id, next_look)
            if not isinstance(error, FileNotFoundError):
                self._reported(known, error)
            if isinstance(error, TimeoutError):
                return  # a rotation would hang, too
            known.inode, known.size = 0, 0
        finally:
            look.close()
        is_new = known.inode != before[0]
        grown = known.size - (0 if is_new else before[1])
        pause = pause_s(self._policy, known.size, grown, now - known.looked_at)
        known.looked_at, known.next_look = now, now + pause
        if is_new:
            self._gone_over(known, is_first=not before[0])
        if (known.size >= self._policy.max_size_bytes or not known.inode) and not known.is_rotating:
            self._tasks.spawn(self._rotate(known), name=f"rotation of {known.path}")

    def _arm(self, known: _Log, fd: int) -> None:
        """The file's next change will be told."""
        try:
            if self._watch is not None:
                self._watch.arm(known.container_id, fd)
                return
        except OSError as error:
            self._reported(known, error)
        self._look_at(known.container_id, self._now() + self._policy.monitor_interval_s)

    def _gone_over(self, known: _Log, *, is_first: bool) -> None:
        """The log is another file."""
        if known.was_signalled:
            log.debug("rotated %s", known.path)
        if known.was_signalled or (is_first and known.was_running):
            self._compress(known)
        known.unconfirmed, known.was_signalled = None, False

    # --- rotations ---

    async def _rotate(self, known: _Log) -> None:
        known.is_rotating = True
        id, policy, pause = known.container_id, self._policy, self._policy.monitor_interval_s
        try:
            done = await asyncio.get_running_loop().run_in_executor(self._rotators, self._rotate_now, known, policy)
        except OSError as error:
            self._reported(known, error)
        else:
            known.unconfirmed, known.problem = done.unconfirmed, ""
            known.was_signalled = known.was_signalled or done.was_signalled
            pause = LEAST_PAUSE_S if done.was_signalled else pause
        finally:
            known.is_rotating = False
        if id in self._logs:
            self._look_at(id, self._now() + pause)

    def _rotate_now(self, known: _Log, policy: LogRotatePolicy) -> Rotated:
        id = known.container_id
        return rotate(
            Path(known.path),
            policy.max_files,
            self._clock.now().wall,
            lambda: monitor_control(id, self._monitor_of(id)),
            known.unconfirmed,
        )

    def _compress(self, known: _Log) -> None:
        known.to_compress = True
        if not known.is_compressing:
            self._tasks.spawn(self._compress_all(known), name=f"compression of {known.path}")

    async def _compress_all(self, known: _Log) -> None:
        known.is_compressing = True
        try:
            while known.to_compress:
                known.to_compress = False
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._compressors, compress_older, Path(known.path), self._goes_on)
        except FileNotFoundError:
            log.debug("%s has gone with its pod", known.path)
        except OSError as error:
            self._reported(known, error)
        finally:
            known.is_compressing = False

    def _goes_on(self) -> bool:
        return not self._stopping.is_set()

    def _make_compressors(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._policy.max_workers, thread_name_prefix="compress", initializer=_be_nice)

    def _reported(self, known: _Log, error: OSError) -> None:
        """Log a problem that repeats once."""
        other = f"{error.filename}: " if error.filename not in (None, str(known.path)) else ""
        problem = f"{other}{error.strerror or error}"
        is_running = known.container_id in self._logs
        level = logging.WARNING if is_running and problem != known.problem else logging.DEBUG
        known.problem = problem
        log.log(level, "cannot rotate %s: %s", known.path, problem)

    def _now(self) -> float:
        """Monotonic seconds."""
        return self._clock.now().mono


def _runs(container: RuntimeContainerStatus) -> bool:
    return container.state is ContainerState.RUNNING


def pause_s(policy: LogRotatePolicy, size: int, grown: int, within_s: float) -> float:
    """Pause until the next look at a log of that size that has grown by so many bytes within so many seconds."""
    if math.isinf(within_s):
        return LEAST_PAUSE_S  # nothing is known of it yet
    if grown <= 0:
        return policy.monitor_interval_s
    full_in_s = max(0, policy.max_size_bytes - size) * within_s / grown
    return min(policy.monitor_interval_s, max(LEAST_PAUSE_S, full_in_s))


def _be_nice() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)
