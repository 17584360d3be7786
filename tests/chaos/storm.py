"""Carries a plan out. Whoever started the agent starts it again when it ends: that is this loop, too."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import psutil

from ipc.host.clock import monotonic
from tests.chaos import disk, procs
from tests.chaos.plan import Fault, Kind, Plan
from tests.chaos.wanted import Wanted
from tests.e2e.agent import Agent
from tests.e2e.status_observer import INFRA
from tests.support.podman_service import COMMAND_DEADLINE_S

TURN_S: Final = 0.1
SPARE_DESCRIPTORS: Final = 2
"""Number of files that a starved process may still open."""

Undo = Callable[[], None]


class Missed(Exception):
    """The target is not there just now."""


class Keeper:
    """Starts the agent again whenever it has ended. Of the main thread: a child dies with the thread that made it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.exits: Counter[int] = Counter()

    def turn(self) -> None:
        code = self._agent.process.poll()
        if code is not None:
            self.exits[code] += 1
            self._agent.respawn()

    def until(self, condition: Callable[[], bool], deadline_s: float) -> bool:
        """Whether it came true in time; the agent is kept alive meanwhile."""
        end = monotonic() + deadline_s
        while not condition():
            if monotonic() > end:
                return False
            self.turn()
            _pause(TURN_S)
        return True


class Storm:
    """One run of a plan."""

    def __init__(
        self, plan: Plan, agent: Agent, wanted: Wanted, keeper: Keeper, disk: Path, say: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._agent = agent
        self._wanted = wanted
        self._keeper = keeper
        self._disk = disk
        self._say = say
        self._commands: list[subprocess.Popen[bytes]] = []
        self._undos: list[tuple[float, int, Fault, Undo]] = []
        self._order = itertools.count()
        self._limits: dict[psutil.Process, tuple[int, int]] = {}
        self.hits: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()

    def rage(self) -> None:
        """Until the plan is over; then everything that can be undone is."""
        began = monotonic()
        faults = iter(self._plan.faults)
        fault = next(faults, None)
        try:
            while (now_s := monotonic() - began) < self._plan.duration_s:
                self._undo(now_s)
                while fault is not None and fault.at_s <= now_s:
                    self._strike(fault, now_s)
                    fault = next(faults, None)
                self._keeper.turn()
                _pause(TURN_S)
        finally:
            self._undo(float("inf"))
            self._wait_for_commands()

    def _strike(self, fault: Fault, now_s: float) -> None:
        try:
            what, undo = _ACTS[fault.kind](self, fault)
        except (Missed, psutil.Error) as missed:
            self.misses[fault.kind] += 1
            self._say(f"{now_s:7.1f} s  {fault}: not there ({missed})")
            return
        self.hits[fault.kind] += 1
        self._say(f"{now_s:7.1f} s  {fault}{f': {what}' if what else ''}")
        if undo is not None:
            heapq.heappush(self._undos, (now_s + fault.lasts_s, next(self._order), fault, undo))

    def _undo(self, now_s: float) -> None:
        while self._undos and self._undos[0][0] <= now_s:
            _, _, _, undo = heapq.heappop(self._undos)
            with contextlib.suppress(psutil.Error):
                undo()

    # --- acts: what was hit, and how it is undone ---

    def kill_process(self, fault: Fault) -> tuple[str, Undo | None]:
        hit = self._role(fault.target)
        hit[-1].kill()
        return f"pid {hit[-1].pid}", None

    def stop_process(self, fault: Fault) -> tuple[str, Undo | None]:
        hit = self._role(fault.target)
        return _stop(*hit)

    def kill_monitor(self, fault: Fault) -> tuple[str, Undo | None]:
        process, name = self._monitor(fault)
        process.kill()
        return f"{name}, pid {process.pid}", None

    def stop_monitor(self, fault: Fault) -> tuple[str, Undo | None]:
        process, name = self._monitor(fault)
        what, undo = _stop(process)
        return f"{name}, {what}", undo

    def kill_container(self, fault: Fault) -> tuple[str, Undo | None]:
        """Kill its process, behind everybody's back."""
        found = [r for r in procs.running(self._agent.instance) if (r.pod, r.part) == (fault.target, fault.part)]
        if not found:
            raise Missed("it does not run")
        psutil.Process(found[0].pid).kill()
        return f"pid {found[0].pid}", None

    def podman_kill(self, fault: Fault) -> tuple[str, Undo | None]:
        return self._podman("kill", "--signal", "KILL", self._monitor(fault)[1])

    def podman_rm(self, fault: Fault) -> tuple[str, Undo | None]:
        """Podman refuses to remove an infra container alone: then it is only an attempt."""
        name = self._monitor(fault)[1]
        return self._podman("rm", "--force", "--time", "0", name)

    def podman_pod_rm(self, fault: Fault) -> tuple[str, Undo | None]:
        name = self._monitor(fault._replace(part=INFRA))[1]
        return self._podman("pod", "rm", "--force", "--time", "0", name.removesuffix("_infra"))

    def edit(self, fault: Fault) -> tuple[str, Undo | None]:
        self._wanted.edit(fault.target)
        return f"edition {self._wanted.editions[fault.target]}", None

    def relabel(self, fault: Fault) -> tuple[str, Undo | None]:
        self._wanted.relabel(fault.target)
        return "", None

    def delete(self, fault: Fault) -> tuple[str, Undo | None]:
        self._wanted.delete(fault.target)
        return "", None

    def add(self, fault: Fault) -> tuple[str, Undo | None]:
        self._wanted.add(fault.target)
        return "", None

    def spoil(self, fault: Fault) -> tuple[str, Undo | None]:
        self._wanted.spoil(fault.target)
        return "", lambda: self._wanted.mend(fault.target)

    def fill_disk(self, fault: Fault) -> tuple[str, Undo | None]:
        disk.fill(self._disk)
        return "", lambda: disk.empty(self._disk)

    def starve(self, fault: Fault) -> tuple[str, Undo | None]:
        """Let it open two files more; what it has, it keeps."""
        hit = self._role(fault.target)[-1]
        if hit in self._limits:
            raise Missed("starves already")
        before = hit.rlimit(psutil.RLIMIT_NOFILE)
        few = hit.num_fds() + SPARE_DESCRIPTORS
        hit.rlimit(psutil.RLIMIT_NOFILE, (min(few, before[0]), before[1]))
        self._limits[hit] = before

        def feed() -> None:
            hit.rlimit(psutil.RLIMIT_NOFILE, self._limits.pop(hit))

        return f"pid {hit.pid}, {few} descriptors", feed

    # --- targets ---

    def _role(self, role: str) -> list[psutil.Process]:
        """The youngest last: of an agent that was killed just now some may still be there."""
        found = procs.roles(self._agent).get(role, [])
        if not found:
            raise Missed("no such process")
        return sorted(found, key=lambda process: process.create_time())

    def _monitor(self, fault: Fault) -> tuple[psutil.Process, str]:
        found = procs.monitors(self._agent).get((fault.target, fault.part))
        if found is None:
            raise Missed("no monitor")
        return found

    def _podman(self, *arguments: str) -> tuple[str, Undo | None]:
        """A stranger's command; nobody waits for it."""
        null = subprocess.DEVNULL
        self._commands.append(subprocess.Popen(["podman", *arguments], stdin=null, stdout=null, stderr=null))
        return arguments[-1], None

    def _wait_for_commands(self) -> None:
        for command in self._commands:
            try:
                command.wait(COMMAND_DEADLINE_S)
            except subprocess.TimeoutExpired:
                command.kill()
                command.wait()


def _stop(*processes: psutil.Process) -> tuple[str, Undo]:
    for process in processes:
        process.send_signal(signal.SIGSTOP)

    def go_on() -> None:
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)

    return f"pid {', '.join(str(process.pid) for process in processes)}", go_on


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


_ACTS: Final[Mapping[Kind, Callable[[Storm, Fault], tuple[str, Undo | None]]]] = {
    Kind.KILL_PROCESS: Storm.kill_process,
    Kind.STOP_PROCESS: Storm.stop_process,
    Kind.KILL_MONITOR: Storm.kill_monitor,
    Kind.STOP_MONITOR: Storm.stop_monitor,
    Kind.KILL_CONTAINER: Storm.kill_container,
    Kind.PODMAN_KILL: Storm.podman_kill,
    Kind.PODMAN_RM: Storm.podman_rm,
    Kind.PODMAN_POD_RM: Storm.podman_pod_rm,
    Kind.EDIT: Storm.edit,
    Kind.RELABEL: Storm.relabel,
    Kind.DELETE: Storm.delete,
    Kind.ADD: Storm.add,
    Kind.BREAK: Storm.spoil,
    Kind.FILL_DISK: Storm.fill_disk,
    Kind.STARVE: Storm.starve,
}
