"""The zygote's link and one channel per living child. Decides nothing: commands come down, events go up."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from ipc.link.eventloop.tasks import BackgroundTasks
from ipc.link.messages.api_server import EventChanged, PackedEventChanged, Reply
from ipc.link.messages.catalogue import LINKS, ZYGOTE, ChildCommand, ChildReport
from ipc.link.messages.pod_worker import SyncDone, SyncPod
from ipc.link.messages.sync_error import SyncError
from ipc.link.messages.zygote import SignalChild, Spawn, ZygoteCommand, ZygoteReport
from ipc.link.wire.boot import Role, WorkerSettings
from ipc.link.wire.channel import UNSENDABLE, Channel, ChannelClosed, FrameTooLarge, ProtocolError
from ipc.link.wire.packets import PacketLink
from supervisor.processes.child_specs import exec_spawn
from supervisor.processes.outbox import Outbox, OutboxFull
from supervisor.processes.worker_pool import KillChild, SpawnChild

ChildChannel = Channel[ChildCommand, ChildReport]
"""The master's end of any child's link; which of the messages its role takes is checked when one is sent."""

log = logging.getLogger(__name__)

MAX_STACK_BYTES: Final = 64 * 1024
"""Most that is read of a child's stack; faulthandler writes 100 frames of each thread."""
UNREAD_S: Final = 30.0
"""How long a child may read nothing of its link while more waits, in seconds: it lives and does no work."""


class LinkEvents(Protocol):
    """Events of the links, for the child manager."""

    def on_zygote_report(self, report: ZygoteReport) -> None:
        """The zygote has spawned or reaped a child, or could not spawn one."""

    def on_zygote_gone(self) -> None:
        """The zygote's end of the link is closed: no child can be spawned or reaped."""

    def on_message(self, slot: int, incarnation: int, message: ChildReport) -> None:
        """An incarnation has sent a message."""

    def on_broken_link(self, slot: int, incarnation: int, why: str) -> None:
        """An incarnation does not drain its link, or sends something that is no message of its role."""

    def on_demand(self, slot: int) -> None:
        """A connection waits at what that slot's children serve."""

    def on_internal_error(self, error: BaseException) -> None:
        """The task that serves a link has failed: whatever comes of a message is carried out in it."""


class _Line:
    """The link to one incarnation, and what waits for room on it."""

    def __init__(self, slot: int, incarnation: int, channel: ChildChannel) -> None:
        self.slot = slot
        self.incarnation = incarnation
        self.channel = channel
        self.outbox = Outbox()
        self.waits_for_room = False


class Links:
    """The sockets and the crash files. Carries out spawns, signals and sends; reports what comes back."""

    def __init__(
        self,
        zygote: socket.socket,
        listening: Mapping[Role, Sequence[socket.socket]],
        events: LinkEvents,
        settings: Callable[[], WorkerSettings],
        *,
        unread_s: float = UNREAD_S,
    ) -> None:
        """``listening``: what the children of a role serve."""
        self._unread_s = unread_s
        zygote.setblocking(False)
        self._zygote: PacketLink[ZygoteCommand, ZygoteReport] = PacketLink(zygote, ZYGOTE.reports)
        self._listening = listening
        self._events = events
        self._settings = settings
        self._lines: dict[int, _Line] = {}
        self._tasks = BackgroundTasks(events.on_internal_error)
        self._crashes: dict[tuple[int, int], int] = {}
        """Slot, incarnation -> the file in memory that it writes its stack to when it crashes."""

    def start(self) -> None:
        asyncio.get_running_loop().add_reader(self._zygote.fileno(), self._read_zygote)

    def spawn(self, command: SpawnChild) -> None:
        """Ask the zygote for an incarnation and serve its link from now on. Raises OSError without file descriptors for
        it: then the zygote was not asked."""
        spec = command.spec
        if spec.role is Role.EXEC:
            self._command(exec_spawn(spec, command.incarnation))
            return
        crash_fd = self._crashes[spec.slot, command.incarnation] = os.memfd_create(f"rootlet-crash-{spec.name}")
        ours, theirs = socket.socketpair()
        fds = [theirs.fileno(), crash_fd, *self._served(spec.role)]
        spawn = Spawn(slot=spec.slot, incarnation=command.incarnation, role=spec.role, settings=self._settings())
        with theirs:
            self._command(spawn, fds)
        self._tasks.spawn(self._serve(spec.slot, command.incarnation, spec.role, ours), name=f"link of {spec.name}")

    def await_demand(self, slot: int, role: Role) -> None:
        """Report, once, when a connection waits at what the children of that role serve: it stays where it
        is, in the backlog; one that came before this call is reported too."""
        for fd in self._served(role):
            asyncio.get_running_loop().add_reader(fd, self._demanded, role, slot)

    def _served(self, role: Role) -> list[int]:
        """Descriptors of the sockets that the children of that role serve."""
        return [listening.fileno() for listening in self._listening.get(role, ())]

    def crash_trace(self, slot: int, incarnation: int) -> str:
        """Stack that an incarnation wrote when it crashed or was aborted, once; empty without one."""
        fd = self._crashes.pop((slot, incarnation), None)
        if fd is None:
            return ""
        try:
            return os.pread(fd, MAX_STACK_BYTES, 0).decode(errors="replace").strip()
        finally:
            os.close(fd)

    def signal(self, command: KillChild) -> None:
        self._command(SignalChild(slot=command.slot, incarnation=command.incarnation, signum=command.signum))

    def send(self, slot: int, incarnation: int, message: ChildCommand) -> None:
        """Queue a message, which leaves when its child has read those before it. One that no link takes is left out;
        the sync that it asks for has failed, and who has asked for an answer is told: nobody else is concerned."""
        line = self._lines.get(slot)
        if line is None or line.channel.closed:
            return  # it is going: its exit will be reported
        try:
            line.outbox.put(message)
        except OutboxFull as full:
            self._events.on_broken_link(slot, incarnation, str(full))
        if not line.waits_for_room:
            self._write(line)

    def _write(self, line: _Line) -> None:
        """As much as there is room for; the rest when there is."""
        while line.channel.has_room and (message := line.outbox.take()) is not None:
            self._post(line, message)
        line.waits_for_room = bool(line.outbox) and not line.channel.closed
        if line.waits_for_room:
            self._tasks.spawn(self._write_later(line), name=f"room on the link of slot {line.slot}")

    async def _write_later(self, line: _Line) -> None:
        channel = line.channel
        while not channel.has_room:
            unread = channel.pending_bytes
            try:
                async with asyncio.timeout(self._unread_s):
                    await channel.room()
            except TimeoutError:
                if channel.pending_bytes == unread:
                    why = f"it has read nothing for {self._unread_s:g} s, {unread} bytes wait for it"
                    self._events.on_broken_link(line.slot, line.incarnation, why)
                    return
        self._write(line)

    def _post(self, line: _Line, message: ChildCommand) -> None:
        try:
            line.channel.post(message, lazy=isinstance(message, EventChanged | PackedEventChanged))
        except ChannelClosed:
            return
        except UNSENDABLE as refusal:
            log.error("%s for slot %d is not sent: %s", type(message).__name__, line.slot, refusal)
            if isinstance(message, Reply):
                self._post(line, _unanswered(message, refusal))
            if isinstance(message, SyncPod):
                # Not at once: the sender may have more to send.
                asyncio.get_running_loop().call_soon(
                    self._events.on_message, line.slot, line.incarnation, _not_synced(message, refusal)
                )

    async def close(self) -> None:
        """Close every link when its pending bytes are written or dropped; the zygote exits when its own is closed."""
        for fd in (self._zygote.fileno(), *(fd for role in self._listening for fd in self._served(role))):
            asyncio.get_running_loop().remove_reader(fd)
        channels = [line.channel for line in self._lines.values()]
        for channel in channels:
            channel.close()
        await self._tasks.close()
        await asyncio.gather(*(channel.wait_closed() for channel in channels))
        self._zygote.close()
        for slot, incarnation in tuple(self._crashes):
            self.crash_trace(slot, incarnation)

    async def _serve(self, slot: int, incarnation: int, role: Role, sock: socket.socket) -> None:
        link = LINKS[role]
        channel: ChildChannel = await Channel.open(sock, link.sent, link.reports)
        line = self._lines[slot] = _Line(slot, incarnation, channel)
        try:
            async for message in channel:
                self._events.on_message(slot, incarnation, message)
        except ProtocolError as error:
            self._events.on_broken_link(slot, incarnation, f"broke the protocol: {error}")
        finally:
            channel.close()
            if self._lines.get(slot) is line:
                del self._lines[slot]

    def _demanded(self, role: Role, slot: int) -> None:
        for fd in self._served(role):
            asyncio.get_running_loop().remove_reader(fd)
        self._events.on_demand(slot)

    def _command(self, command: ZygoteCommand, fds: Sequence[int] = ()) -> None:
        """A zygote that does not take a packet at once is as good as gone: its loop does nothing that takes time."""
        try:
            self._zygote.send(command, fds)
        except (BlockingIOError, ConnectionError):
            self._events.on_zygote_gone()

    def _read_zygote(self) -> None:
        """Read all reports that wait."""
        while True:
            try:
                received = self._zygote.receive()
            except BlockingIOError:
                return
            except ProtocolError:
                received = None
            if received is None:
                asyncio.get_running_loop().remove_reader(self._zygote.fileno())
                self._events.on_zygote_gone()
                return
            self._events.on_zygote_report(received[0])


def _not_synced(asked: SyncPod, refusal: Exception) -> SyncDone:
    """SyncDone in place of a worker that was never asked."""
    return SyncDone(
        uid=asked.uid,
        generation=asked.generation,
        incarnation=asked.incarnation,
        kind=asked.kind,
        summary="not sent to its worker",
        error=SyncError.TOO_LARGE if isinstance(refusal, FrameTooLarge) else SyncError.UNENCODABLE,
        message=str(refusal),
    )


def _unanswered(reply: Reply, refusal: Exception) -> Reply:
    """Reply in place of one that cannot be sent: whoever has asked waits for one."""
    return Reply(
        request_id=reply.request_id, code=500, reason="InternalError", message=f"the answer was not sent: {refusal}"
    )
