"""Master and zygote, as packets."""

from __future__ import annotations

import msgspec

from ipc.link.messages.base import Message
from ipc.link.wire.boot import Role, WorkerSettings


class Spawn(Message, frozen=True, kw_only=True):
    """Fork a child into a slot. File descriptors ride along: its link and the file for its stack when it crashes (none
    for ``Role.EXEC``), then what it serves: the admin socket and its server's ports, or the dialer's socket."""

    slot: int
    incarnation: int
    role: Role
    settings: WorkerSettings | None = None
    argv: tuple[str, ...] = ()
    """For ``Role.EXEC``: the program and its arguments."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """For ``Role.EXEC``: added to the environment."""


class SignalChild(Message, frozen=True, kw_only=True):
    """Send a signal to that incarnation, if it has not been reaped. ``EXEC`` children get it as a process group."""

    slot: int
    incarnation: int
    signum: int


class Spawned(Message, frozen=True, kw_only=True):
    slot: int
    incarnation: int
    pid: int


class Exited(Message, frozen=True, kw_only=True):
    """An incarnation was reaped."""

    slot: int
    incarnation: int
    pid: int
    exit_code: int
    """As ``os.waitstatus_to_exitcode``: negative is a signal."""


class SpawnFailed(Message, frozen=True, kw_only=True):
    """An incarnation could not be spawned: there was no room for a process or for its pidfd."""

    slot: int
    incarnation: int
    message: str


ZygoteCommand = Spawn | SignalChild
ZygoteReport = Spawned | SpawnFailed | Exited
