"""A worker's end of the dialer: asks for sockets in pods' networks and waits for them."""

from __future__ import annotations

import asyncio
import itertools
import socket
from typing import Final

import msgspec

from ipc.link.messages.catalogue import DIALING
from ipc.link.messages.dialer import DialerAnswer, MakeSocket, SocketRefused
from ipc.link.wire.framing import ProtocolError
from ipc.link.wire.packets import PacketLink
from workers.podhttp.pod_network import DialError, DialTimeout, PodNetwork

DEADLINE_S: Final = 5.0
"""For one socket, in seconds: a dialer that died is replaced within it, one that hangs is not waited for."""
RETRY_S: Final = 0.02
"""Between two attempts to reach the dialer, in seconds."""
MAX_ASKED: Final = 64
"""Requests under way at a time; more of them wait. As many answers fit into the connection."""

_Family = socket.AddressFamily
_Socket = socket.socket
_Pending = tuple[MakeSocket, asyncio.Future[_Socket]]
_NOBODY: Final = (None, None)


class DialerClient:
    """`workers.podhttp.pod_network.Dialer` for one event loop: one connection, on which answers are matched by their
    numbers.

    The dialer may die at any time. Then the connection ends, and unanswered requests are sent again on the next one,
    until their deadlines. Nothing is lost by that: the kernel closes a socket that was not received.
    """

    def __init__(self, path: str, deadline_s: float = DEADLINE_S) -> None:
        """``path`` of the dialer's socket."""
        self._path = path
        self._deadline_s = deadline_s
        self._numbers = itertools.count(1)
        self._asked: dict[int, _Pending] = {}
        """By number, the oldest first."""
        self._turn = asyncio.Semaphore(MAX_ASKED)
        self._link: PacketLink[MakeSocket, DialerAnswer] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._closed = False

    async def socket(self, network: PodNetwork, family: _Family) -> _Socket:
        """See `workers.podhttp.pod_network.Dialer`. For the host's network the dialer is not asked. Raises DialError,
        DialTimeout."""
        if network.infra_pid < 0:
            raise DialError("the pod has no sandbox that runs")
        if not network.infra_pid:
            return _own_socket(family)
        try:
            async with asyncio.timeout(self._deadline_s), self._turn:
                return await self._ask(network, family)
        except TimeoutError as late:
            raise DialTimeout(f"the dialer has not answered within {self._deadline_s:g} s") from late

    def close(self) -> None:
        """Fail all waiting callers with DialError."""
        self._closed = True
        self._hang_up()
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_exception(DialError("this process leaves"))

    async def _ask(self, network: PodNetwork, family: _Family) -> _Socket:
        if self._closed:
            raise DialError("this process leaves")
        number = next(self._numbers)
        request = MakeSocket(
            number=number, pid=network.infra_pid, start_ticks=network.infra_start_ticks, family=int(family)
        )
        answer: asyncio.Future[_Socket] = asyncio.get_running_loop().create_future()
        self._asked[number] = (request, answer)
        try:
            self._send(request)
            return await answer
        except BaseException:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                answer.result().close()  # it came, and nobody waits for it any more
            raise
        finally:
            del self._asked[number]

    def _send(self, request: MakeSocket) -> None:
        if self._link is None:
            self._connect()
            return
        try:
            self._link.send(request)
        except OSError:
            self._lost()

    def _connect(self) -> None:
        """And ask for everything that is unanswered. A refusal is tried again a moment later."""
        if self._retry is not None:
            return
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        except OSError:
            self._lost()
            return
        link: PacketLink[MakeSocket, DialerAnswer] = PacketLink(sock, DIALING.reports)
        self._link = link
        asyncio.get_running_loop().add_reader(link.fileno(), self._read)
        try:
            sock.connect(self._path)
            for number, (request, answer) in tuple(self._asked.items()):
                link.send(request)
                again = msgspec.structs.replace(request, repeats=request.repeats + 1)
                self._asked[number] = (again, answer)
        except OSError:
            self._lost()

    def _read(self) -> None:
        """All that has come."""
        while self._link is not None:
            try:
                received = self._link.receive()
            except BlockingIOError:
                return
            except ProtocolError:
                received = None
            if received is None:
                self._lost()
                return
            self._answered(*received)

    def _answered(self, message: DialerAnswer, fds: list[int]) -> None:
        sockets = [socket.socket(fileno=fd) for fd in fds]
        _, answer = self._asked.get(message.number, _NOBODY)
        if answer is None or answer.done():
            for nobodys in sockets:
                nobodys.close()
        elif isinstance(message, SocketRefused):
            answer.set_exception(DialError(message.message))
        elif sockets:
            sockets[0].setblocking(False)
            answer.set_result(sockets[0])
        else:
            answer.set_exception(DialError("the dialer has sent no socket"))

    def _lost(self) -> None:
        """The connection has ended. The next one waits in the backlog for the dialer's successor."""
        self._hang_up()
        if self._asked and not self._closed:
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self._again)

    def _again(self) -> None:
        self._retry = None
        if self._asked:
            self._connect()

    def _hang_up(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._link is not None:
            asyncio.get_running_loop().remove_reader(self._link.fileno())
            self._link.close()
            self._link = None


def _own_socket(family: _Family) -> _Socket:
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise DialError(f"no socket can be made: {error.strerror}") from error
    made.setblocking(False)
    return made
