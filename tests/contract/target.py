"""Targets of the contract suite, and the little that it needs around the verbs."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from tests.fakes.ownership import signed_container, signed_pod
from tests.fakes.podman import FakePodman
from tests.fakes.runtime import FakeRuntime
from tests.support.podman_service import PodmanService
from workers.kubecontainer import labels
from workers.kubecontainer.runtime import InspectedContainer, Runtime, RuntimeCallError
from workers.kuberuntime.remove import REMOVE_TRIES
from workers.podman import PodmanRuntime
from workers.proc.pidfd import open_pidfd, wait_ended

FAKE_IMAGE = "localhost/rootlet-test:latest"
FOREVER = ("sleep", "1000")
DEADLINE_S = 20.0
"""For Podman to show what a verb has done."""


class Target(Protocol):
    """One runtime with an instance name of its own."""

    runtime: Runtime
    image: str
    instance: str

    def stranger(self) -> Runtime:
        """A runtime of another instance name on the same Podman."""

    async def clean(self) -> None:
        """Remove everything and close."""


class LyingTarget(Target, Protocol):
    """One that can be made to show what is not so: no service that only stands for Podman."""

    async def kill_monitor(self, container: InspectedContainer) -> None:
        """kill -9 of its conmon; returns when that is dead."""

    async def kill_process(self, container: InspectedContainer) -> None:
        """kill -9 of its first process, behind Podman's back; returns when that is dead."""

    async def abandon_stop(self, container: InspectedContainer) -> None:
        """Somebody's `podman stop` is killed while it waits."""


class _Base:
    def __init__(self, runtime: Runtime, image: str, instance: str) -> None:
        self.runtime, self.image, self.instance = runtime, image, instance
        self._closing = [runtime]

    async def clean(self) -> None:
        for pod in await self.runtime.list_pods():
            await remove(self.runtime.remove_pod, pod.id)
        for container in await self.runtime.list_containers():
            await remove(self.runtime.remove_container, container.id)
        for runtime in self._closing:
            await runtime.close()


class FakeTarget(_Base):
    def __init__(self, podman: FakePodman) -> None:
        super().__init__(FakeRuntime(podman, "one"), FAKE_IMAGE, "one")
        self._podman = podman

    def stranger(self) -> Runtime:
        return FakeRuntime(self._podman, "two")

    async def kill_monitor(self, container: InspectedContainer) -> None:
        self._podman.kill_monitor(container.id)

    async def kill_process(self, container: InspectedContainer) -> None:
        self._podman.exit(container.id, 137)

    async def abandon_stop(self, container: InspectedContainer) -> None:
        self._podman.abandon(container.id, "stopping")


class ServerTarget(_Base):
    """The simulated service: what PodmanRuntime says goes over a real socket."""

    def __init__(self, socket: str) -> None:
        super().__init__(PodmanRuntime(socket, "one"), FAKE_IMAGE, "one")
        self.socket = socket

    def stranger(self) -> Runtime:
        made = PodmanRuntime(self.socket, "two")
        self._closing.append(made)
        return made


class PodmanTarget(_Base):
    def __init__(self, service: PodmanService, *, is_own_service: bool = False, limits_processes: bool = False) -> None:
        instance = service.new_instance()
        runtime = PodmanRuntime(
            service.socket, instance, is_own_service=is_own_service, limits_processes=limits_processes
        )
        super().__init__(runtime, service.image, instance)
        self.socket = service.socket
        self._service = service
        self._is_own_service = is_own_service

    def stranger(self) -> Runtime:
        instance = self._service.new_instance()
        made = PodmanRuntime(self._service.socket, instance, is_own_service=self._is_own_service)
        self._closing.append(made)
        return made

    async def kill_monitor(self, container: InspectedContainer) -> None:
        await _kill(container.conmon_pid)

    async def kill_process(self, container: InspectedContainer) -> None:
        await _kill(container.pid)

    async def abandon_stop(self, container: InspectedContainer) -> None:
        stop = await asyncio.create_subprocess_exec("podman", "stop", "--time", "1000", container.id)
        await eventually(lambda: self.runtime.inspect_container(container.id), lambda c: c.state == "stopping")
        stop.kill()
        await stop.wait()


async def remove(verb: Callable[[str], Awaitable[None]], id: str) -> None:
    """As often as Podman needs it."""
    for remaining in reversed(range(REMOVE_TRIES)):
        try:
            return await verb(id)
        except RuntimeCallError:
            if not remaining:
                raise
    return None


async def _kill(pid: int) -> None:
    pidfd = open_pidfd(pid)
    assert pidfd is not None
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        assert await wait_ended(pidfd, DEADLINE_S)
    finally:
        os.close(pidfd)


_numbers = itertools.count()


def unique(word: str, target: Target) -> str:
    return f"{word}-{target.instance}-{next(_numbers)}"


def pod_spec(target: Target, uid: str = "u1", **more: Any) -> dict[str, Any]:
    return signed_pod(
        {
            "name": unique("pod", target),
            "labels": {labels.INSTANCE: target.instance, labels.POD_UID: uid, labels.ATTEMPT: "0"},
            "exit_policy": "continue",
            "shared_namespaces": ["ipc", "net", "uts"],
            **more,
        }
    )


def container_spec(
    target: Target, pod_id: str, command: Sequence[str] = FOREVER, uid: str = "u1", **more: Any
) -> dict[str, Any]:
    return signed_container(
        {
            "name": unique("container", target),
            "image": target.image,
            "pod": pod_id,
            "command": list(command),
            "labels": {labels.INSTANCE: target.instance, labels.POD_UID: uid, labels.CONTAINER_NAME: "main"},
            "healthconfig": {"Test": ["NONE"]},
            "restart_policy": "no",
            **more,
        }
    )


async def running(target: Target, command: Sequence[str] = FOREVER) -> InspectedContainer:
    """A container of a new pod, started."""
    pod = await target.runtime.create_pod(pod_spec(target))
    id = await target.runtime.create_container(container_spec(target, pod, command))
    await target.runtime.start_container(id)
    return await target.runtime.inspect_container(id)


async def eventually(
    look: Callable[[], Awaitable[InspectedContainer]], holds: Callable[[InspectedContainer], bool]
) -> InspectedContainer:
    """Look until the condition holds; fails at DEADLINE_S."""
    async with asyncio.timeout(DEADLINE_S):
        while not holds(found := await look()):  # noqa: ASYNC110 - another program's state
            await asyncio.sleep(0.02)
    return found


async def exited(target: Target, id: str, *states: str) -> InspectedContainer:
    """The container when Podman shows its end, in one of these states or in any."""
    ends = states or ("stopped", "exited")
    return await eventually(lambda: target.runtime.inspect_container(id), lambda found: found.state in ends)
