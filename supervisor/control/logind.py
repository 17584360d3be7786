"""logind's notice that the host goes down, and its leave to delay that (org.freedesktop.login1(5), systemd-inhibit(1)).

dbus-fast is imported here alone, when a graceful shutdown is configured. An ordinary user may take a delay inhibitor,
but not raise InhibitDelayMaxSec, as the kubelet does (pkg/kubelet/nodeshutdown/systemd/inhibit_linux.go).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

log = logging.getLogger(__name__)

SERVICE: Final = "org.freedesktop.login1"
PATH: Final = "/org/freedesktop/login1"
MANAGER: Final = "org.freedesktop.login1.Manager"
SIGNAL: Final = "PrepareForShutdown"
DEADLINE_S: Final = 5.0
"""Deadline of each call, in seconds."""
DELAY_DEADLINE_S: Final = 1.0
"""Deadline of the question for the time that there is: it costs a part of that."""
FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 60.0
"""Between attempts to reach a bus that is not there (upstream's dbusReconnectPeriod is one second)."""
_WHO: Final = "rootlet"
_WHY: Final = "pods end in order, each within its grace period"


class LogindError(Exception):
    """logind cannot be asked, or has refused."""


class Logind:
    """One connection to the system bus. Its inhibitor goes with it."""

    def __init__(self, bus: MessageBus, owner: str) -> None:
        self._bus = bus
        self._owner = owner
        self._inhibitor = -1

    @classmethod
    async def connect(cls) -> Logind:
        """Raises LogindError, also where dbus-fast is not installed."""
        try:
            from dbus_fast import BusType
            from dbus_fast.aio import MessageBus
        except ImportError as error:
            raise LogindError("dbus-fast is not installed: pip install 'rootlet[logind]'") from error
        try:
            async with asyncio.timeout(DEADLINE_S):
                bus = await MessageBus(bus_type=BusType.SYSTEM, negotiate_unix_fd=True).connect()
        except Exception as error:  # each of its parts raises exceptions of its own
            raise LogindError(f"no system bus: {error}") from error
        try:
            (owner,) = (await _call(bus, "org.freedesktop.DBus", "GetNameOwner", "s", SERVICE)).body
        except LogindError:
            await _disconnect(bus)
            raise
        return cls(bus, owner)

    async def inhibit_delay_s(self) -> float:
        """Seconds for which logind waits for us at most: its InhibitDelayMaxSec. Root may change that at any time, and
        logind tells nobody. Raises LogindError."""
        return int(await self._property("InhibitDelayMaxUSec", DELAY_DEADLINE_S)) / 1_000_000

    async def is_preparing(self) -> bool:
        """Whether the host goes down already. Raises LogindError."""
        return bool(await self._property("PreparingForShutdown"))

    async def listen(self, notice: Callable[[bool], None]) -> None:
        """Have ``notice`` called with True when the host is about to go down, with False when that was called off.

        A match alone would not do: any client of the bus may send this connection a signal of that name. Raises
        LogindError.
        """

        def take(message: Message) -> None:
            said = (message.sender, message.interface, message.member, message.signature)
            if said == (self._owner, MANAGER, SIGNAL, "b"):
                notice(bool(message.body[0]))

        rule = f"type='signal',sender='{SERVICE}',path='{PATH}',interface='{MANAGER}',member='{SIGNAL}'"
        self._bus.add_message_handler(take)
        await _call(self._bus, "org.freedesktop.DBus", "AddMatch", "s", rule)

    async def inhibit(self) -> None:
        """Have the shutdown wait until `release`. Raises LogindError, also while the host goes down already: then
        logind gives nobody an inhibitor."""
        if self._inhibitor >= 0:
            return
        answer = await _call(self._bus, MANAGER, "Inhibit", "ssss", "shutdown", _WHO, _WHY, "delay")
        self._inhibitor = answer.unix_fds[answer.body[0]]

    def release(self) -> None:
        """The shutdown need not wait for us any more."""
        if self._inhibitor >= 0:
            os.close(self._inhibitor)
            self._inhibitor = -1

    async def until_gone(self) -> None:
        """Wait for the end of the connection, or of the logind that it was made to."""
        with contextlib.suppress(OSError, EOFError):
            await self._bus.wait_for_disconnect()  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        """Release the inhibitor and end the connection."""
        self.release()
        await _disconnect(self._bus)

    async def _property(self, name: str, deadline_s: float = DEADLINE_S) -> Any:
        what = ("org.freedesktop.DBus.Properties", "Get", "ss", MANAGER, name)
        answer = await _call(self._bus, *what, deadline_s=deadline_s)
        return answer.body[0].value


async def _disconnect(bus: MessageBus) -> None:
    """End the connection, and close its socket."""
    bus.disconnect()
    with contextlib.suppress(TimeoutError, OSError, EOFError):
        async with asyncio.timeout(DEADLINE_S):
            await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]


async def _call(
    bus: MessageBus, interface: str, member: str, signature: str, *body: Any, deadline_s: float = DEADLINE_S
) -> Message:
    from dbus_fast import Message, MessageType

    is_bus = interface == "org.freedesktop.DBus"
    message = Message(
        destination=interface if is_bus else SERVICE,
        path="/org/freedesktop/DBus" if is_bus else PATH,
        interface=interface,
        member=member,
        signature=signature,
        body=list(body),
    )
    try:
        async with asyncio.timeout(deadline_s):
            answer = await bus.call(message)
    except TimeoutError as error:
        raise LogindError(f"{member}: no answer within {deadline_s:g} s") from error
    except (OSError, EOFError) as error:
        raise LogindError(f"{member}: {error}") from error
    if answer.message_type is MessageType.ERROR:
        raise LogindError(f"{member}: {answer.body[0] if answer.body else answer.error_name}")
    return answer
