"""Commands in containers: by the OCI runtime itself where that can be, else by an exec session of Podman's.

Directly, a command costs two short programs and leaves nothing. A session costs Podman's service, two monitors and two
of its clean-ups, and its monitors stay for as long as the service's ``exit_command_delay`` says. It is for containers
that are not reached otherwise: of another OCI runtime, another user, another host.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from ipc.host.clock import wall
from ipc.link.eventloop.loop_clock import loop_time
from ipc.link.eventloop.tasks import BackgroundTasks
from workers.exec import tags
from workers.exec.child import ExecChild, NotStarted, spawn
from workers.exec.direct import NotDirect, Target, find_target, is_about_the_command
from workers.exec.keyed_limiter import KeyedLimiter, Release
from workers.exec.sessions import ExecSessions, too_late
from workers.exec.tags import ProcessTag
from workers.kubecontainer.runtime import EXEC, ErrorKind, ExecResult, InspectedContainer, RuntimeCallError

EXECS_OF_A_CONTAINER: Final = 4
"""Commands under way in one container that wait for no other container's: its probes and a hook."""
MAX_MORE_EXECS: Final = 256
"""Commands under way of one process beyond those."""
MAX_TARGETS: Final = 2048
"""Most containers whose target is cached. The oldest is dropped first, and found again."""
MAX_KILL_ROUNDS: Final = 20
"""Most scans for processes of a command that must end."""
PATIENT_ROUNDS: Final = 10
"""After so many the OCI runtime, which waits for the command, is killed too."""
KILL_ROUND_S: Final = 0.1
"""How long a round waits for what was killed to end, in seconds: a busy machine takes its time."""

Inspect = Callable[[str], Awaitable[InspectedContainer]]

log = logging.getLogger(__name__)


class Execs:
    """Commands of one process in any containers. For one event loop."""

    def __init__(self, sessions: ExecSessions, inspect: Inspect) -> None:
        self._sessions = sessions
        self._inspect = inspect
        self._targets: dict[str, Target | None] = {}
        self._capacity = KeyedLimiter(own=EXECS_OF_A_CONTAINER, common=MAX_MORE_EXECS)
        self._numbers = itertools.count()
        self._running = BackgroundTasks()
        self._killer = _Killer()
        self._has_warned = False

    async def run(self, id: str, command: Sequence[str], timeout_s: float) -> ExecResult:
        """See `workers.kubecontainer.runtime.Runtime.exec_container`."""
        deadline = loop_time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                target = await self._target(id)
                release = await self._capacity.acquire(id) if target is not None else None
        except TimeoutError:
            raise too_late(timeout_s) from None
        refusal, lasts = "", True
        if target is not None and release is not None:
            try:
                return await asyncio.shield(self._begin(target, command, timeout_s, deadline, release))
            except NotStarted as error:
                refusal, lasts = str(error), not error.passes()
                await self._explain(id, refusal)
        result = await self._sessions.run(id, command, max(deadline - loop_time(), 0.0))
        if target is not None and lasts and target.is_there():
            self._warn_once(refusal)
            self._remember(id, None)
        return result

    async def close(self) -> None:
        """Commands that still run run on."""
        await self._running.close()

    async def _target(self, id: str) -> Target | None:
        """How the container is reached; None through its service. Raises NOT_FOUND, WRONG_STATE."""
        known = self._targets.get(id)
        if (known is None and id in self._targets) or (known is not None and known.is_there()):
            return known
        container = await self._running_container(id)
        try:
            return self._remember(id, find_target(container))
        except NotDirect as error:
            self._warn_once(str(error))
            return self._remember(id, None)

    async def _running_container(self, id: str) -> InspectedContainer:
        container = await self._inspect(id)
        if container.state != "running":
            raise RuntimeCallError(ErrorKind.WRONG_STATE, EXEC, f"the container is {container.state}")
        return container

    def _remember(self, id: str, target: Target | None) -> Target | None:
        self._targets.pop(id, None)
        if len(self._targets) >= MAX_TARGETS:
            del self._targets[next(iter(self._targets))]
        self._targets[id] = target
        return target

    def _begin(
        self, target: Target, command: Sequence[str], timeout_s: float, deadline: float, release: Release
    ) -> asyncio.Task[ExecResult]:
        """The command's task: a caller that is cancelled leaves the command running until its deadline."""
        tag = ProcessTag(os.getpid(), next(self._numbers), int(wall() + timeout_s) + 1)
        try:
            child = spawn(target, target.process_json(command, tag))
        except OSError as error:
            release()
            raise NotStarted(f"{target.program}: {error}") from error
        task = self._running.spawn(
            self._await_end(child, tag, timeout_s, deadline), name="command", expected=(RuntimeCallError, NotStarted)
        )
        task.add_done_callback(lambda _: release())
        return task

    async def _await_end(self, child: ExecChild, tag: ProcessTag, timeout_s: float, deadline: float) -> ExecResult:
        try:
            async with asyncio.timeout_at(deadline):
                await child.ended()
            return child.result()
        except TimeoutError:
            await self._killer.end(child, tag)
            raise too_late(timeout_s) from None
        except RuntimeCallError:
            await self._killer.end(child, tag)
            raise
        finally:
            child.close()

    async def _explain(self, id: str, refusal: str) -> None:
        """Raises what was wrong with the command or with the container; returns when it was neither."""
        if is_about_the_command(refusal):
            raise RuntimeCallError(ErrorKind.COMMAND, EXEC, refusal)
        await self._running_container(id)

    def _warn_once(self, why: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning("a command in a container has to go through Podman's service, which costs more: %s", why)


class _Killer:
    """Ends commands whose time is over. A scan for processes costs the same for one command and for all."""

    def __init__(self) -> None:
        self._due: dict[ProcessTag, int] = {}
        self._scan: asyncio.Task[frozenset[ProcessTag]] | None = None
        self._next: asyncio.Task[frozenset[ProcessTag]] | None = None
        self._tasks = BackgroundTasks()

    async def end(self, child: ExecChild, tag: ProcessTag) -> None:
        """Kill what the command has started, and make the child end: of its own accord, for it waits for the command
        as its parent, or by SIGKILL."""
        self._due[tag] = child.pid
        try:
            is_gone = await self._kill(child, tag)
        except OSError as error:  # no descriptor is left to look with
            log.warning("a command in a container cannot be killed: %s", error)
            child.kill()
        else:
            if not is_gone:
                log.warning("a command in a container could not be killed within %d rounds", MAX_KILL_ROUNDS)
        finally:
            del self._due[tag]

    async def _kill(self, child: ExecChild, tag: ProcessTag) -> bool:
        for number in range(MAX_KILL_ROUNDS):
            had_ended = child.has_ended
            found = await self._scanned()
            if had_ended and tag not in found:
                return True
            if number >= PATIENT_ROUNDS:
                child.kill()
            await (asyncio.sleep(KILL_ROUND_S) if had_ended else self._wait(child))
        return False

    async def _wait(self, child: ExecChild) -> None:
        try:
            async with asyncio.timeout(KILL_ROUND_S):
                await child.ended()
        except TimeoutError:
            return  # another round

    def _scanned(self) -> Awaitable[frozenset[ProcessTag]]:
        """Result of a scan that begins after this call, shared with all callers before it begins."""
        if self._next is None:
            self._next = self._tasks.spawn(
                self._scan_after(self._scan), name="scan for processes of commands", expected=(OSError,)
            )
        return asyncio.shield(self._next)

    async def _scan_after(self, before: asyncio.Task[frozenset[ProcessTag]] | None) -> frozenset[ProcessTag]:
        if before is not None:
            await asyncio.wait((before,))
        self._scan, self._next = self._next, None
        due: Mapping[ProcessTag, int] = dict(self._due)
        return await asyncio.to_thread(tags.kill, due.keys(), frozenset(due.values()), wall())
