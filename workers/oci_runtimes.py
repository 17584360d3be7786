"""Containers of another OCI runtime than Podman's own.

Podman's API takes ``oci_runtime`` of a container and does not act on it, up to 5.8 (podman#28429): a container is
made with the runtime of the service that makes it, and keeps that, by its path, whichever service starts, lists or
removes it later. So a service with that runtime is started when the first container of it is made, on the same
storage, and ends when none was made for a while. It is asked nothing else.

Podman 6.1 acts on it where the service's containers.conf names the runtime by its path, as that of the agent's own
service does (`supervisor.processes.podman_service.write_conf`): then there is no second service.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ipc.link.eventloop.tasks import BackgroundTasks
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.client import Answer, LibpodClient, Request

START_S: Final = 10.0
"""How long a service may take until it listens, in seconds; it takes 0.1."""
POLL_S: Final = 0.02
TERM_S: Final = 5.0
"""How long a service that is told to end may take, in seconds; it takes 0.01."""
IDLE_S: Final = 10.0
"""How long a service stays without a request, in seconds."""
ORPHAN_IDLE_S: Final = 30
"""How long a service whose starter has died stays without a request, in seconds: Podman itself ends it."""
ACTS_SINCE: Final = ("006", "001")
"""Version of the API from which a service acts on ``oci_runtime``, in digits that compare as text."""
MakeClient = Callable[[str], LibpodClient]
"""Makes a client of a socket."""


def acts_on_runtime(version: str) -> bool:
    """Whether a service of that version makes a container with the runtime that is asked for."""
    numbers = version.split(".", 2)[:2]
    return all(map(str.isdecimal, numbers)) and tuple(number.rjust(3, "0") for number in numbers) >= ACTS_SINCE


class RuntimeServices(msgspec.Struct, frozen=True):
    """How a service is started."""

    podman: str = "podman"
    options: tuple[str, ...] = ()
    """Global options of Podman's."""
    environment: Mapping[str, str] = {}
    """Added to this process's own."""
    directory: str = ""
    """Where sockets lie; empty: there are no such services."""


class OciRuntimes:
    """Services by the path of their OCI runtime. For one event loop."""

    def __init__(self, settings: RuntimeServices, make_client: MakeClient) -> None:
        self._settings = settings
        self._make_client = make_client
        self._services: dict[str, _Service] = {}

    async def call(self, oci_runtime: str, request: Request) -> Answer:
        """Have the call answered by a service of that runtime. Raises RuntimeCallError."""
        if not self._settings.directory:
            raise RuntimeCallError(ErrorKind.INTERNAL, request.call, f"no service of {oci_runtime} can be started")
        service = self._services.setdefault(oci_runtime, _Service(self._settings, oci_runtime, self._make_client))
        return await service.call(request)

    async def close(self) -> None:
        """End all services."""
        for service in self._services.values():
            await service.close()


class _Service:
    """The service of one runtime, while there is one."""

    def __init__(self, settings: RuntimeServices, oci_runtime: str, make_client: MakeClient) -> None:
        self._settings = settings
        self._oci_runtime = oci_runtime
        self._make_client = make_client
        name = hashlib.sha256(oci_runtime.encode()).hexdigest()[:8]
        self._path = Path(settings.directory) / f"oci-{name}-{os.getpid()}.sock"
        self._running: tuple[subprocess.Popen[bytes], LibpodClient] | None = None
        self._changing = asyncio.Lock()
        """Held while the service is started or ended."""
        self._calls = 0
        self._idle: asyncio.TimerHandle | None = None
        self._tasks = BackgroundTasks()

    async def call(self, request: Request) -> Answer:
        self._calls += 1
        self._stay()
        try:
            return await (await self._ready(request.call)).call(request)
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._leave)

    async def close(self) -> None:
        self._stay()
        self._tasks.cancel()
        await self._end()

    def _stay(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = None

    def _leave(self) -> None:
        self._tasks.spawn(self._end_if_idle(), name=f"end of the Podman service of {self._oci_runtime}")

    async def _end_if_idle(self) -> None:
        async with self._changing:
            if not self._calls:
                await self._end()

    async def _ready(self, call: str) -> LibpodClient:
        async with self._changing:
            if self._running is not None and self._running[0].poll() is None:
                return self._running[1]
            await self._end()
            try:
                async with asyncio.timeout(START_S):
                    return await self._start(call)
            except TimeoutError:
                raise self._failed(call, f"does not listen within {START_S:g} s") from None

    async def _start(self, call: str) -> LibpodClient:
        self._path.unlink(missing_ok=True)
        try:
            process = self._spawn()
        except OSError as error:
            raise self._failed(call, f"cannot be started: {error.strerror}") from error
        self._running = process, self._make_client(str(self._path))
        while not _listens(self._path):
            if (code := process.poll()) is not None:
                raise self._failed(call, f"ended with {code}")
            await asyncio.sleep(POLL_S)
        return self._running[1]

    async def _end(self) -> None:
        """SIGTERM, and after a while SIGKILL."""
        if self._running is None:
            return
        (process, client), self._running = self._running, None
        await client.close()
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, TERM_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)
        self._path.unlink(missing_ok=True)

    def _spawn(self) -> subprocess.Popen[bytes]:
        """Blocks for the few milliseconds of a vfork. Raises OSError."""
        service = ("system", "service", "--time", str(ORPHAN_IDLE_S), f"unix://{self._path}")
        return subprocess.Popen(
            (self._settings.podman, *self._settings.options, "--runtime", self._oci_runtime, *service),
            env={**os.environ, **self._settings.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )

    def _failed(self, call: str, why: str) -> RuntimeCallError:
        return RuntimeCallError(ErrorKind.UNAVAILABLE, call, f"the Podman service of {self._oci_runtime} {why}")


def _listens(path: Path) -> bool:
    """A socket that is there does not yet listen."""
    with socket.socket(socket.AF_UNIX) as client, contextlib.suppress(OSError):
        client.connect(str(path))
        return True
    return False
