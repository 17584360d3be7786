"""A system bus of the test's own with a login1 on it, as far as inhibitors and the notice of a shutdown go.

The bus is Debian's dbus-daemon; only logind is played, because the real one needs a systemd that has booted the host.
"""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from dbus_fast import DBusError, PropertyAccess
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, dbus_property, method, signal

from supervisor.control.logind import MANAGER, PATH, SERVICE

DEADLINE_S: Final = 20.0
needs_bus = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="needs dbus-daemon on PATH")
_CONFIG: Final = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/>
</policy></busconfig>
"""


class _Manager(ServiceInterface):
    """org.freedesktop.login1.Manager."""

    def __init__(self, delay_s: float, *, preparing: bool) -> None:
        super().__init__(MANAGER)
        self.delay_s = delay_s
        self.preparing = preparing
        self.given: list[int] = []
        """The read end of each inhibitor's pipe."""
        self.asked: list[tuple[str, str, str]] = []

    def is_held(self) -> bool:
        """Whether somebody holds the newest inhibitor: nobody has its pipe's other end otherwise."""
        if not self.given:
            return False
        try:
            return bool(os.read(self.given[-1], 1))
        except BlockingIOError:
            return True

    @method()
    def Inhibit(self, what: "s", who: "s", why: "s", mode: "s") -> "h":  # type: ignore[name-defined]  # noqa: F821, UP037
        if self.preparing:
            words = "The operation inhibition has been requested for is already running"
            raise DBusError("org.freedesktop.login1.OperationInProgress", words)
        self.asked.append((what, who, mode))
        mine, theirs = os.pipe()
        os.set_blocking(mine, False)
        self.given.append(mine)
        asyncio.get_running_loop().call_later(0.1, os.close, theirs)  # once it was sent
        return theirs

    @dbus_property(access=PropertyAccess.READ)
    def InhibitDelayMaxUSec(self) -> "t":  # type: ignore[name-defined]  # noqa: F821, UP037
        return int(self.delay_s * 1_000_000)

    @dbus_property(access=PropertyAccess.READ)
    def PreparingForShutdown(self) -> "b":  # type: ignore[name-defined]  # noqa: F821, UP037
        return self.preparing

    @signal()
    def PrepareForShutdown(self, active: bool) -> "b":  # type: ignore[name-defined]  # noqa: F821, UP037
        return active

    def tell(self, *, active: bool) -> None:
        """The property has its value before the signal goes out."""
        self.preparing = active
        self.PrepareForShutdown(active)


class Login1:
    """The played logind, from any thread."""

    def __init__(self, address: str, loop: asyncio.AbstractEventLoop, manager: _Manager) -> None:
        self.address = address
        """Address of the bus: DBUS_SYSTEM_BUS_ADDRESS."""
        self._loop = loop
        self._manager = manager

    @property
    def asked(self) -> list[tuple[str, str, str]]:
        """Inhibitions: what, by whom, how."""
        return self._manager.asked

    @property
    def is_held(self) -> bool:
        """Whether somebody holds the newest inhibitor."""
        return self._manager.is_held()

    def reload(self, delay_s: float) -> None:
        """Read the configuration again: nobody is told."""
        self._manager.delay_s = delay_s

    def tell(self, *, active: bool) -> None:
        """PrepareForShutdown: the host is about to go down, or it stays up after all."""
        self._loop.call_soon_threadsafe(functools.partial(self._manager.tell, active=active))


@contextmanager
def system_bus(directory: Path, delay_s: float = 5.0, *, preparing: bool = False) -> Iterator[Login1]:
    """A bus with a logind that waits so long; ``preparing``: the host goes down already."""
    config, address = directory / "bus.conf", f"unix:path={directory / 'bus'}"
    config.write_text(_CONFIG.format(socket=directory / "bus"))
    command = ["dbus-daemon", f"--config-file={config}", "--nofork", "--nopidfile", "--print-address=1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        try:
            assert daemon.stdout.readline()
            with _served(address, _Manager(delay_s, preparing=preparing)) as login1:
                yield login1
        finally:
            daemon.terminate()


@contextmanager
def _served(address: str, manager: _Manager) -> Iterator[Login1]:
    """In a thread, so that tests with and without a loop may use it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def connect() -> MessageBus:
        bus = await MessageBus(bus_address=address, negotiate_unix_fd=True).connect()
        bus.export(PATH, manager)
        await bus.request_name(SERVICE)
        return bus

    async def disconnect(bus: MessageBus) -> None:
        bus.disconnect()
        with suppress(OSError, EOFError):
            await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(DEADLINE_S)

    bus = run(connect())
    try:
        yield Login1(address, loop, manager)
    finally:
        run(disconnect(bus))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_S)
        loop.close()
        for descriptor in manager.given:
            os.close(descriptor)
