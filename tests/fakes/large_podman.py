"""`FakePodman` for ten thousand pods: indices instead of searches, and processes behind the pids of its containers."""

from __future__ import annotations

import asyncio
import enum
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from ipc.host.clock import SystemClock
from tests.fakes.podman import KILLED, NAME, FakeContainer, FakePod, FakePodman, Program
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError, SpecDict


class Processes(enum.Enum):
    """Kinds of processes behind the pid of a running container."""

    REAL = "real"
    """A process of its own that does nothing; it ends with the container, and the container with it."""
    SHARED = "shared"
    """One process for all of them: the pid exists, its pidfd never fires, and an end is told by events and lists."""


class _Child(msgspec.Struct, frozen=True):
    process: subprocess.Popen[bytes]
    pidfd: int


class _Index(dict[str, Any]):
    """Pods or containers by id, findable by name and by one more key."""

    def __init__(self, group_of: Callable[[Any], str]) -> None:
        super().__init__()
        self._group_of = group_of
        self.ids: dict[str, str] = {}
        """Name -> id."""
        self.groups: dict[str, dict[str, Any]] = {}
        """The other key -> those that have it, by id."""

    def __setitem__(self, id: str, value: Any) -> None:
        super().__setitem__(id, value)
        self.ids[value.name] = id
        self.groups.setdefault(self._group_of(value), {})[id] = value

    def __delitem__(self, id: str) -> None:
        value = self[id]
        super().__delitem__(id)
        del self.ids[value.name]
        group = self.groups[self._group_of(value)]
        del group[id]
        if not group:
            del self.groups[self._group_of(value)]

    def named(self, id: str) -> Any:
        """By id or name; None when there is none."""
        return self.get(id) or self.get(self.ids.get(id, ""))


class LargePodman(FakePodman):
    """Belongs to the running loop."""

    def __init__(self, images: Iterable[str], processes: Processes) -> None:
        super().__init__(SystemClock(), images=images)
        self._pods = self.pods = _Index(lambda pod: str(pod.labels.get(labels.POD_UID, "")))
        self._containers = self.containers = _Index(lambda container: str(container.pod_id))
        self._shared = _idle_process() if processes is Processes.SHARED else None
        self._children: dict[str, _Child] = {}
        """By container id."""

    def pods_of(self, uid: str) -> list[FakePod]:
        return list(self._pods.groups.get(uid, {}).values())

    def pod(self, id: str) -> FakePod:
        found: FakePod | None = self._pods.named(id)
        return found if found is not None else self._unknown("pod", id)

    def container(self, id: str) -> FakeContainer:
        found: FakeContainer | None = self._containers.named(id)
        return found if found is not None else self._unknown("container", id)

    def members(self, pod: FakePod) -> list[FakeContainer]:
        return list(self._containers.groups.get(pod.id, {}).values())

    def create_container(self, spec: SpecDict) -> str:
        """Specification of a container that runs the entry point with the command as its arguments."""
        command = [*spec.get("entrypoint", ()), *spec.get("command", ())]
        return super().create_container({**spec, "command": command})

    def remove_container(self, id: str) -> None:
        found: FakeContainer | None = self._containers.named(id)
        if found is None:
            self.layers.discard(id)
        elif found.is_infra:
            raise RuntimeCallError(
                ErrorKind.INTERNAL, "fake", "an infra container cannot be removed without removing the pod"
            )
        else:
            self._remove(found)

    def exit(self, id: str, exit_code: int = 0, *, oom_killed: bool = False) -> None:
        super().exit(id, exit_code, oom_killed=oom_killed)
        child = self._children.pop(id, None)
        if child is not None:
            asyncio.get_running_loop().remove_reader(child.pidfd)
            os.close(child.pidfd)
            _end(child.process)

    def close(self) -> None:
        super().close()
        for id in list(self._children):
            self.exit(id, KILLED)
        if self._shared is not None:
            _end(self._shared)

    def _program(self, command: Sequence[str]) -> Program | None:
        """A shell is found in /bin, too."""
        first, *rest = command or [""]
        return super()._program([first.removeprefix("/bin/"), *rest])

    def _run(self, container: FakeContainer, program: Program) -> None:
        super()._run(container, program)
        if self._shared is not None:
            container.pid = self._shared.pid
            return
        process = _idle_process()
        container.pid = process.pid
        child = self._children[container.id] = _Child(process, os.pidfd_open(process.pid))
        # Somebody killed it, behind our back.
        asyncio.get_running_loop().add_reader(child.pidfd, self.exit, container.id, KILLED)

    def _refuse_name(self, name: str) -> None:
        """Without looking at every name there is."""
        if not NAME.fullmatch(name):
            raise RuntimeCallError(ErrorKind.INVALID, "fake", f"names must match {NAME.pattern}: invalid argument")
        if name in self._pods.ids or name in self._containers.ids or name in self.layers:
            raise RuntimeCallError(ErrorKind.NAME_IN_USE, "fake", f"name {name} is in use")

    @staticmethod
    def _unknown(what: str, id: str) -> Any:
        raise RuntimeCallError(ErrorKind.NOT_FOUND, "fake", f"no such {what} {id}")


def _idle_process() -> subprocess.Popen[bytes]:
    """Sleeps until it is killed; in a group of its own, so that a Ctrl-C does not end it."""
    return subprocess.Popen(["sleep", "infinity"], stdin=subprocess.DEVNULL, process_group=0)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
