"""The dialer: makes sockets in the network namespaces of pods and hands them over.

A socket stays in the network namespace in which it was made, whoever uses it. To enter one, a process must have joined
the user namespace to which it belongs: Podman's. The kernel lets only a process with a single thread do that, and there
is no way back. Hence a process of its own, which does nothing else and has no event loop: it polls.

Pods may lie in several user namespaces, one after the other: when Podman has had to make its own anew, those that were
there before stay in the old one. One process can join one; for a pod in another it leaves, after MIN_STAY_S, and its
next incarnation joins the one of the first request that it gets. Whoever waits asks again, so all are reached, slowly.
"""

from __future__ import annotations

import logging
import math
import os
import random
import select
import signal
import socket
import struct
import sys
from collections.abc import Iterable
from typing import Final, NoReturn

import msgspec

from ipc.board import WorkerRowWriter
from ipc.boot import EXIT_BEGIN_ANEW, ChildContext
from ipc.clock import Clock
from ipc.framing import FrameDecoder, ProtocolError, encode_frame
from ipc.messages import DialerAnswer, DialerCommand, MakeSocket, Ready, Shutdown, SocketMade, SocketRefused
from ipc.packets import PacketLink
from workers import namespaces, processes

MAX_CLIENTS: Final = 128
"""Connections at a time: every worker has one."""
SEND_BUFFER_BYTES: Final = 64 * 1024
"""Of each connection: some hundred answers. A client that reads none of them is let go."""
MIN_STAY_S: Final = 0.5
"""How long an incarnation serves one user namespace at least, in seconds, while a pod in another one waits."""
LINK_READ_BYTES: Final = 4096

_PEER: Final = struct.Struct("3i")
"""struct ucred: pid, uid, gid."""

log = logging.getLogger(__name__)

Client = PacketLink[DialerAnswer, MakeSocket]


def run_dialer(context: ChildContext, clock: Clock, row_writer: WorkerRowWriter) -> int:
    """Serve until the master says so or is gone; the exit code."""
    assert context.listen is not None, "the dialer is born with its socket"
    signal.signal(signal.SIGTERM, _leave)
    dialer = Dialer(context.listen, Workshop(), clock)
    context.link.sendall(encode_frame(msgspec.msgpack.encode(Ready(pid=os.getpid()))))
    master = _MasterLink(context.link)
    dialer.watch(master.fileno())
    next_beat = 0.0
    while True:
        now = clock.now().mono
        if now >= next_beat:
            row_writer.beat(now)
            next_beat = now + context.settings.heartbeat_period_s
        ready = dialer.turn(next_beat - now)
        if dialer.must_leave(clock.now().mono):
            return EXIT_BEGIN_ANEW
        if master.fileno() in ready and master.says_leave():
            return 0


def _leave(*_: object) -> NoReturn:
    sys.exit(0)


class _MasterLink:
    """The dialer's end of its link: it hears nothing but the end."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._frames = FrameDecoder()
        self._decoder: msgspec.msgpack.Decoder[DialerCommand] = msgspec.msgpack.Decoder(DialerCommand)

    def fileno(self) -> int:
        return self._sock.fileno()

    def says_leave(self) -> bool:
        """To be asked when there is something to read. Raises ProtocolError, msgspec.DecodeError."""
        data = self._sock.recv(LINK_READ_BYTES)
        return not data or any(isinstance(self._decoder.decode(f), Shutdown) for f in self._frames.feed(data))


class Elsewhere(Exception):
    """That pod lies in another user namespace than the one that was joined."""


class Refused(Exception):
    """No socket can be made there, and asking again will not help."""


class Workshop:
    """Where sockets are made: this process, once it has joined a user namespace."""

    def __init__(self) -> None:
        self.joined = False
        self._home = namespaces.open_network(os.getpid())
        """A network namespace that is no pod's, and that there is a way back to."""
        self._away = False

    def make(self, request: MakeSocket) -> socket.socket:
        """Raises Refused, Elsewhere."""
        try:
            network = namespaces.open_network(request.pid)
        except ProcessLookupError as error:
            raise Refused("the pod's sandbox has ended") from error
        except OSError as error:
            if isinstance(error, PermissionError) and self.joined:
                raise Elsewhere from error
            raise Refused(f"the pod's network cannot be opened: {error.strerror}") from error
        try:
            # Looked at when the namespace is open: had another process got the pid in between, this would say so.
            if not request.start_ticks or processes.start_ticks(request.pid) != request.start_ticks:
                raise Refused("the pod's sandbox has ended, its pid is another process's")
            self._enter(network)
            return socket.socket(request.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            raise Refused(f"no socket can be made in the pod's network: {error.strerror}") from error
        finally:
            os.close(network)

    def go_home(self) -> None:
        """A pod's network goes with its last process: this one must not be that."""
        if self._away:
            namespaces.enter_network(self._home)
            self._away = False

    def _enter(self, network: int) -> None:
        """Raises OSError, Refused, Elsewhere."""
        try:
            namespaces.enter_network(network)
        except PermissionError as error:
            if self.joined:
                raise Elsewhere from error
            self._join(network)
            namespaces.enter_network(network)
        self._away = True

    def _join(self, network: int) -> None:
        """Raises OSError, Refused."""
        user = namespaces.user_namespace_above(network)
        if user is None:
            raise Refused("the pod's network is the host's, or another user's")
        try:
            namespaces.enter_user(user)
            self.joined = True
            log.info("joined the user namespace %d", os.fstat(user).st_ino)
        finally:
            os.close(user)
        namespaces.leave_network()  # there is no way back to the host's from here
        os.close(self._home)
        self._home = namespaces.open_network(os.getpid())


class Dialer:
    """Clients and their requests. A turn answers at most one request of each, and waits for nobody."""

    def __init__(self, listen: socket.socket, workshop: Workshop, clock: Clock) -> None:
        listen.setblocking(False)
        self._listen = listen
        self._workshop = workshop
        self._clock = clock
        self._clients: dict[int, Client] = {}
        """By file descriptor."""
        self._leave_at = math.inf
        """Monotonic seconds; somebody wants another user namespace."""
        self._began_at = clock.now().mono
        self._poll = select.poll()
        self.watch(listen.fileno())

    def watch(self, fd: int) -> None:
        """A turn ends when there is something to read there."""
        self._poll.register(fd, select.POLLIN)

    def must_leave(self, now: float) -> bool:
        """Only a new process can go on."""
        return now >= self._leave_at

    def turn(self, timeout_s: float) -> set[int]:
        """Wait that long for something to do, and do it. Returns what there is something to read on."""
        until_leaving_s = self._leave_at - self._clock.now().mono
        wait_s = max(0.0, min(timeout_s, until_leaving_s))
        ready = {fd for fd, _ in self._poll.poll(math.ceil(wait_s * 1000))}
        if self._listen.fileno() in ready:
            self._accept()
        for fd in self._in_order(ready & self._clients.keys()):
            self._serve(fd)
        self._workshop.go_home()
        return ready

    def _in_order(self, fds: Iterable[int]) -> list[int]:
        """Which user namespace is joined must not depend on who is quickest."""
        shuffled = list(fds)
        if not self._workshop.joined:
            random.shuffle(shuffled)
        return shuffled

    def _accept(self) -> None:
        try:
            sock, _ = self._listen.accept()
        except (BlockingIOError, ConnectionError):
            return
        if not _is_ours(sock) or len(self._clients) >= MAX_CLIENTS:
            log.warning("a connection is refused: %d clients are there", len(self._clients))
            sock.close()
            return
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        client: Client = PacketLink(sock, MakeSocket)
        self._clients[client.fileno()] = client
        self.watch(client.fileno())

    def _serve(self, fd: int) -> None:
        client = self._clients[fd]
        try:
            received = client.receive()
        except BlockingIOError:
            return
        except ProtocolError as error:
            log.warning("a client spoke nonsense: %s", error)
            received = None
        if received is None:
            self._let_go(fd)
            return
        request, fds = received
        for sent in fds:
            os.close(sent)
        try:
            self._answer(client, request)
        except Elsewhere:
            # Unanswered: it is asked again when this connection ends.
            self._leave_at = min(self._leave_at, self._began_at + MIN_STAY_S)
        except OSError as error:
            log.warning("a client takes no answers: %s", error.strerror)
            self._let_go(fd)

    def _answer(self, client: Client, request: MakeSocket) -> None:
        """Raises Elsewhere; OSError when the client does not take the answer."""
        try:
            made = self._workshop.make(request)
        except Refused as refused:
            client.send(SocketRefused(number=request.number, message=str(refused)))
            return
        with made:
            client.send(SocketMade(number=request.number), [made.fileno()])

    def _let_go(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._clients.pop(fd).close()


def _is_ours(sock: socket.socket) -> bool:
    """The peer is a process of this very user."""
    peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return bool(_PEER.unpack(peer)[1] == os.geteuid())
