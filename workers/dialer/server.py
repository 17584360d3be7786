"""The dialer: makes sockets in the network namespaces of pods and hands them over.

A socket stays in the network namespace in which it was made, whoever uses it. To enter one, a process must have joined
the user namespace to which it belongs: Podman's. The kernel lets only a process with a single thread do that, and there
is no way back. Hence a process of its own, which does nothing else and has no event loop: it polls.

Pods may lie in several user namespaces, one after the other: when Podman has had to make its own anew, those that were
there before stay in the old one. One process can join one; for a pod in another it leaves, after MIN_STAY_S, and its
next incarnation joins that of the request which was left unanswered most often. So all are reached, slowly.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from typing import Final, NoReturn

import msgspec

from ipc.host.clock import Clock
from ipc.link.messages.base import Ready, Shutdown
from ipc.link.messages.catalogue import DIALER, DIALING
from ipc.link.messages.dialer import DialerAnswer, DialerCommand, MakeSocket, SocketMade, SocketRefused
from ipc.link.shm.board import WorkerRowWriter
from ipc.link.shm.followed_verbosity import FollowedVerbosity
from ipc.link.wire.boot import EXIT_IDLE, EXIT_RESPAWN, ChildContext
from ipc.link.wire.framing import FrameDecoder, ProtocolError, encode_frame
from ipc.link.wire.packets import PacketLink
from workers.dialer import namespaces
from workers.dialer.netns_holders import AnotherProcess, InfraProcesses
from workers.proc import procfs
from workers.proc.peers import peer_uid

MAX_CLIENTS: Final = 128
"""Connections at a time: every worker has one."""
SEND_BUFFER_BYTES: Final = 64 * 1024
"""Bytes that wait in each connection: some hundred answers. A client that reads none of them is let go."""
MIN_STAY_S: Final = 0.5
"""How long an incarnation serves one user namespace at least, in seconds, while a pod in another one waits."""
PAUSE_S: Final = 0.2
"""Pause before new connections are accepted again when there was no file descriptor for one, in seconds."""
GATHER_S: Final = 0.05
"""How long an incarnation waits at its first request for others, in seconds: more than
`workers.dialer.client.RETRY_S`."""
LINK_READ_BYTES: Final = 4096
SCARCITY: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})

log = logging.getLogger(__name__)

Client = PacketLink[DialerAnswer, MakeSocket]


def run_dialer(context: ChildContext, clock: Clock, row_writer: WorkerRowWriter) -> int:
    """Serve until the master says so or is gone; the exit code."""
    assert context.listen is not None, "the dialer is born with its socket"
    signal.signal(signal.SIGTERM, _leave)
    dialer = DialerServer(context.listen, Workshop(), clock.now().mono, context.settings.idle_timeout_s)
    context.link.sendall(encode_frame(msgspec.msgpack.encode(Ready(pid=os.getpid()))))
    master = _MasterLink(context.link)
    dialer.watch(master.fileno())
    next_beat, verbosity = 0.0, FollowedVerbosity(context.board)
    while (leave := dialer.leave(now := clock.now().mono)) is None:
        if now >= next_beat:
            row_writer.beat(now)
            verbosity.look()
            next_beat = now + context.settings.heartbeat_period_s
        ready = dialer.turn(now, next_beat)
        if master.fileno() in ready and master.says_leave():
            return 0
    return leave


def _leave(*_: object) -> NoReturn:
    sys.exit(0)


class _MasterLink:
    """The dialer's end of its link: it hears nothing but the end."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._frames = FrameDecoder()
        self._decoder: msgspec.msgpack.Decoder[DialerCommand] = msgspec.msgpack.Decoder(DIALER.commands)

    def fileno(self) -> int:
        return self._sock.fileno()

    def says_leave(self) -> bool:
        """To be asked when there is something to read. Raises ProtocolError, msgspec.DecodeError."""
        try:
            data = self._sock.recv(LINK_READ_BYTES)
        except ConnectionError:
            return True
        return not data or any(isinstance(self._decoder.decode(f), Shutdown) for f in self._frames.feed(data))


class Elsewhere(Exception):
    """The pod lies in another user namespace than the one that was joined."""


class Refused(Exception):
    """No socket can be made there, and asking again will not help."""


class NotNow(Exception):
    """This process or the host has too little of something just now; no pod is to blame."""


class Workshop:
    """Where sockets are made: this process, once it has joined a user namespace."""

    def __init__(self) -> None:
        self.joined = False
        self._home: int | None = namespaces.open_network(os.getpid())
        """A network namespace that is no pod's, and that there is a way back to. None when there is none."""
        self._away = False
        self._infras = InfraProcesses()

    def make(self, request: MakeSocket) -> socket.socket:
        """Raises Refused, Elsewhere, NotNow."""
        try:
            return self._make(request)
        except ProcessLookupError as error:
            raise Refused("the pod's sandbox has ended") from error
        except AnotherProcess as error:
            raise Refused("the pod's sandbox has ended, its pid is another process's") from error
        except OSError as error:
            if error.errno in SCARCITY:
                self._infras.forget_all()
                raise NotNow(error.strerror) from error
            raise Refused(f"no socket can be made in the pod's network: {error.strerror}") from error

    def _make(self, request: MakeSocket) -> socket.socket:
        """Raises OSError, AnotherProcess, Refused, Elsewhere."""
        infra = self._infras.pidfd(request.pid, request.start_ticks)
        try:
            namespaces.enter_network(infra)
        except PermissionError as error:
            if self.joined:
                raise Elsewhere from error
            self._join(request)
            namespaces.enter_network(infra)
        self._away = True
        return socket.socket(request.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)

    def go_home(self) -> None:
        """A pod's network goes with its last process: this one must not be that."""
        if self._away and self._home is not None:
            namespaces.enter_network(self._home)
            self._away = False

    def _join(self, request: MakeSocket) -> None:
        """Raises OSError, AnotherProcess, Refused."""
        user = self._user_namespace(request)
        if user is None:
            raise Refused("the pod's network is the host's, or another user's")
        try:
            namespaces.enter_user(user)
            self.joined = True
            log.info("joined the user namespace %d", os.fstat(user).st_ino)
        finally:
            os.close(user)
        # From here there is no way back to the host's network.
        if self._home is not None:
            os.close(self._home)
            self._home = None
        try:
            namespaces.leave_network()
            self._home = namespaces.open_network(os.getpid())
        except OSError as error:
            log.warning("the last pod's network is kept until the next one is entered: %s", error.strerror)

    def _user_namespace(self, request: MakeSocket) -> int | None:
        """The one to join for that pod. Raises OSError, AnotherProcess."""
        network = namespaces.open_network(request.pid)
        try:
            # Looked at when the namespace is open: had another process got the pid in between, this would say so.
            if procfs.start_ticks(request.pid) != request.start_ticks:
                raise AnotherProcess
            return namespaces.user_namespace_above(network)
        finally:
            os.close(network)


class DialerServer:
    """Clients and their requests. One round answers at most one request of each, without waiting."""

    def __init__(self, listen: socket.socket, workshop: Workshop, began_at: float, idle_timeout_s: float) -> None:
        """``began_at``: the incarnation, monotonic seconds."""
        listen.setblocking(False)
        self._listen = listen
        self._workshop = workshop
        self._clients: dict[int, Client] = {}
        """By file descriptor."""
        self._leave_at = math.inf
        """Monotonic seconds; when a client needs another user namespace."""
        self._began_at = began_at
        self._idle_timeout_s = idle_timeout_s
        self._asked_at = began_at
        """When something was to be done last, monotonic seconds."""
        self._gathered = False
        self._accepts = True
        """New connections; for a moment not when there is no file descriptor for one."""
        self._reported = ""
        """The error that was logged last."""
        self._poll = select.poll()
        self.watch(listen.fileno())

    def watch(self, fd: int) -> None:
        """The wait of a round ends when this is readable."""
        self._poll.register(fd, select.POLLIN)

    def leave(self, now: float) -> int | None:
        """Exit code when only a new process can go on, or the dialer was idle for long. A client that asks in that
        moment finds the connection ended, and asks the next incarnation."""
        if now >= self._leave_at:
            return EXIT_RESPAWN
        return EXIT_IDLE if now >= self._asked_at + self._idle_timeout_s else None

    def turn(self, now: float, until: float) -> list[int]:
        """Wait until then (monotonic seconds) for something to do, and do it. Returns what can be read from."""
        wait_s = max(0.0, min(until, self._leave_at) - now)
        if not self._accepts:
            wait_s = min(wait_s, PAUSE_S)
        ready = [fd for fd, _ in self._poll.poll(math.ceil(wait_s * 1000))]
        if any(fd in self._clients or fd == self._listen.fileno() for fd in ready):
            self._asked_at = now
        if self._listen.fileno() in ready:
            self._accept()
        if not self._gathered and any(fd in self._clients for fd in ready):
            ready = self._gather()
        self._serve(fd for fd in ready if fd in self._clients)
        self._workshop.go_home()
        if not self._accepts and not ready:
            self._accepts = True
            self.watch(self._listen.fileno())
        return ready

    def _gather(self) -> list[int]:
        """Before the first answer: let all be there who ask again, so that it is not the quickest who decides which
        user namespace is joined. Returns what can be read from."""
        self._gathered = True
        time.sleep(GATHER_S)
        while self._accepts and self._accept():
            pass
        return [fd for fd, _ in self._poll.poll(0)]

    def _accept(self) -> bool:
        """False when no client waits."""
        try:
            sock, _ = self._listen.accept()
        except (BlockingIOError, ConnectionError):
            return False
        except OSError as error:
            self._tell(f"a connection has to wait: {error.strerror}")
            self._accepts = False
            self._poll.unregister(self._listen.fileno())
            return False
        if peer_uid(sock) != os.geteuid() or len(self._clients) >= MAX_CLIENTS:
            self._tell(f"a connection is refused, {len(self._clients)} are there")
            sock.close()
            return True
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        client: Client = PacketLink(sock, DIALING.commands)
        self._clients[client.fileno()] = client
        self.watch(client.fileno())
        return True

    def _serve(self, fds: Iterable[int]) -> None:
        """A request of each; first those that other incarnations have left unanswered most often."""
        requests = [(fd, request) for fd in fds if (request := self._receive(fd)) is not None]
        for fd, request in sorted(requests, key=lambda asked: -asked[1].repeats):
            self._answer_or_let_go(fd, request)

    def _receive(self, fd: int) -> MakeSocket | None:
        try:
            received = self._clients[fd].receive()
        except BlockingIOError:
            return None
        except ProtocolError as error:
            log.warning("a client spoke nonsense: %s", error)
            received = None
        if received is None:
            self._let_go(fd)
            return None
        request, fds = received
        for sent in fds:
            os.close(sent)
        return request

    def _answer_or_let_go(self, fd: int, request: MakeSocket) -> None:
        try:
            self._answer(self._clients[fd], request)
        except Elsewhere:
            # Unanswered: it is asked again when this connection ends.
            self._leave_at = min(self._leave_at, self._began_at + MIN_STAY_S)
        except NotNow as error:
            self._tell(f"no socket can be made just now: {error}")
            self._let_go(fd)
        except OSError as error:
            log.warning("a client takes no answers: %s", error.strerror)
            self._let_go(fd)

    def _answer(self, client: Client, request: MakeSocket) -> None:
        """Raises Elsewhere, NotNow; OSError when the client does not take the answer."""
        try:
            made = self._workshop.make(request)
        except Refused as refused:
            client.send(SocketRefused(number=request.number, message=str(refused)))
            return
        with made:
            client.send(SocketMade(number=request.number), [made.fileno()])
        self._reported = ""

    def _tell(self, trouble: str) -> None:
        """Once, until a socket could be made again: clients try again fifty times a second."""
        if trouble != self._reported:
            log.warning("%s", trouble)
        self._reported = trouble

    def _let_go(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._clients.pop(fd).close()
