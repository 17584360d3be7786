from __future__ import annotations

import array
import asyncio
import fcntl
import os
import socket
from collections.abc import Callable, Iterator

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipc.link.wire.packets import MAX_FDS, MAX_PACKET_BYTES, FrameTooLarge, PacketLink, ProtocolError

pytestmark = pytest.mark.timeout(20)

SOCKET_TIMEOUT_S = 5.0
"""Deadline of the blocking calls in these tests."""


class Spawn(msgspec.Struct, frozen=True, tag=True):
    slot: int
    blob: bytes = b""


class Exited(msgspec.Struct, frozen=True, tag=True):
    slot: int


class Stop(msgspec.Struct, frozen=True, tag=True):
    pass


LARGEST = Spawn(1, bytes(MAX_PACKET_BYTES - len(msgspec.msgpack.encode(Spawn(1, bytes(0xFFFF)))) + 0xFFFF))

Link = PacketLink[Spawn | Stop, Exited]
Peer = PacketLink[Exited, Spawn | Stop]


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.settimeout(SOCKET_TIMEOUT_S)
        theirs.settimeout(SOCKET_TIMEOUT_S)
        yield ours, theirs


@pytest.fixture
def raw(sockets: tuple[socket.socket, socket.socket]) -> socket.socket:
    """The other end, for sending what no PacketLink sends."""
    return sockets[0]


@pytest.fixture
def link(sockets: tuple[socket.socket, socket.socket]) -> Link:
    return PacketLink(sockets[0], Exited)


@pytest.fixture
def peer(sockets: tuple[socket.socket, socket.socket]) -> Peer:
    return PacketLink(sockets[1], Spawn | Stop)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)
    os.close(writer)


def open_fds() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def send_raw(sock: socket.socket, payload: bytes, fds: list[int]) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([payload], rights)


def test_messages_keep_order_and_borders(link: Link, peer: Peer) -> None:
    for slot in range(3):
        link.send(Spawn(slot, bytes(slot * 1000)))
    link.send(Stop())
    peer.send(Exited(7))
    assert [peer.receive() for _ in range(4)] == [*((Spawn(n, bytes(n * 1000)), []) for n in range(3)), (Stop(), [])]
    assert link.receive() == (Exited(7), [])


def test_descriptors_arrive_open_and_close_on_exec(link: Link, peer: Peer, pipe: tuple[int, int]) -> None:
    link.send(Spawn(1), fds=[pipe[1], pipe[0], pipe[1]])
    received = peer.receive()
    assert received is not None
    message, fds = received
    assert message == Spawn(1)
    assert len(fds) == 3
    assert not set(fds) & set(pipe)
    assert all(fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC for fd in fds)
    os.write(fds[0], b"through the copy")
    assert os.read(pipe[0], 100) == b"through the copy"
    for fd in fds:
        os.close(fd)


def test_most_descriptors(link: Link, peer: Peer, pipe: tuple[int, int]) -> None:
    link.send(Spawn(1), fds=[pipe[0]] * MAX_FDS)
    received = peer.receive()
    assert received is not None
    assert len(received[1]) == MAX_FDS
    for fd in received[1]:
        os.close(fd)
    with pytest.raises(ValueError, match=f"maximum of {MAX_FDS}"):
        link.send(Spawn(1), fds=[pipe[0]] * (MAX_FDS + 1))


def test_largest_packet(link: Link, peer: Peer) -> None:
    assert len(msgspec.msgpack.encode(LARGEST)) == MAX_PACKET_BYTES
    link.send(LARGEST)
    assert peer.receive() == (LARGEST, [])
    with pytest.raises(FrameTooLarge, match=str(MAX_PACKET_BYTES)):
        link.send(Spawn(1, LARGEST.blob + b"1"))
    link.send(Stop())
    assert peer.receive() == (Stop(), [])


HOSTILE_PACKETS: dict[str, tuple[bytes, int]] = {
    "garbage": (b"\xc1garbage", 1),
    "wrong tag": (msgspec.msgpack.encode(Exited(1)), 2),
    "truncated message": (msgspec.msgpack.encode(Spawn(1, b"abc"))[:-1], 1),
    "deep nesting": (b"\x82\xa4type\xa4Stop\xa1x" + b"\x91" * 60_000, 1),
    "one byte too large": (msgspec.msgpack.encode(LARGEST) + b"\x00", MAX_FDS),
    "far too large": (bytes(2 * MAX_PACKET_BYTES), MAX_FDS),
    "too many descriptors": (msgspec.msgpack.encode(Stop()), MAX_FDS + 1),
    "far too many descriptors": (msgspec.msgpack.encode(Stop()), 200),
    "no bytes but descriptors": (b"", 1),
}


@pytest.mark.parametrize(("payload", "fd_count"), HOSTILE_PACKETS.values(), ids=HOSTILE_PACKETS.keys())
def test_hostile_packet_is_refused_and_leaks_no_descriptor(
    raw: socket.socket, peer: Peer, pipe: tuple[int, int], payload: bytes, fd_count: int
) -> None:
    before = open_fds()
    send_raw(raw, payload, [pipe[0]] * fd_count)
    with pytest.raises(ProtocolError):
        peer.receive()
    assert open_fds() == before
    send_raw(raw, msgspec.msgpack.encode(Stop()), [])
    assert peer.receive() == (Stop(), [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=st.binary(min_size=1, max_size=200), fd_count=st.integers(0, MAX_FDS + 2))
def test_random_packet_is_a_message_or_refused(
    raw: socket.socket, peer: Peer, pipe: tuple[int, int], payload: bytes, fd_count: int
) -> None:
    before = open_fds()
    send_raw(raw, payload, [pipe[0]] * fd_count)
    try:
        received = peer.receive()
    except ProtocolError:
        assert open_fds() == before
        return
    assert received is not None
    assert isinstance(received[0], Spawn | Stop)
    assert len(received[1]) == fd_count
    for fd in received[1]:
        os.close(fd)


def test_what_was_sent_before_the_end_still_arrives(link: Link, peer: Peer) -> None:
    link.send(Spawn(1))
    link.close()
    link.close()
    assert link.fileno() == -1
    assert peer.receive() == (Spawn(1), [])
    assert peer.receive() is None
    assert peer.receive() is None
    with pytest.raises(ConnectionError):
        peer.send(Exited(1))


def test_peer_that_leaves_with_unread_packets_is_eof(link: Link, peer: Peer) -> None:
    link.send(Spawn(1))
    peer.close()
    assert link.receive() is None


def test_non_blocking_receive_with_nothing_there(sockets: tuple[socket.socket, socket.socket], peer: Peer) -> None:
    sockets[1].setblocking(False)
    with pytest.raises(BlockingIOError):
        peer.receive()


def fill(link: Link) -> int:
    """Send until the kernel takes no more; how many it took."""
    for sent in range(1000):
        try:
            link.send(Spawn(sent, bytes(50_000)))
        except BlockingIOError:
            return sent
    raise AssertionError("the socket never filled")


def test_non_blocking_send_to_a_full_link_sends_nothing(
    sockets: tuple[socket.socket, socket.socket], link: Link, peer: Peer, pipe: tuple[int, int]
) -> None:
    sockets[0].setblocking(False)
    sent = fill(link)
    before = open_fds()
    with pytest.raises(BlockingIOError):
        link.send(Spawn(sent, bytes(50_000)), fds=[pipe[0]])
    assert open_fds() == before
    link.close()
    assert [peer.receive() for _ in range(sent)] == [(Spawn(n, bytes(50_000)), []) for n in range(sent)]
    assert peer.receive() is None


async def test_master_side_in_an_event_loop(
    sockets: tuple[socket.socket, socket.socket], link: Link, peer: Peer
) -> None:
    sockets[0].setblocking(False)
    loop = asyncio.get_running_loop()
    received: asyncio.Queue[tuple[Exited, list[int]] | None] = asyncio.Queue()
    loop.add_reader(link.fileno(), lambda: received.put_nowait(link.receive()))
    try:
        async with asyncio.timeout(SOCKET_TIMEOUT_S):
            peer.send(Exited(1))
            peer.send(Exited(2))
            assert await received.get() == (Exited(1), [])
            assert await received.get() == (Exited(2), [])
            peer.close()
            assert await received.get() is None
    finally:
        loop.remove_reader(link.fileno())


@pytest.mark.parametrize(
    "make",
    [
        lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM),
        lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
    ],
    ids=["stream", "datagram"],
)
def test_other_sockets_are_refused(make: Callable[[], tuple[socket.socket, socket.socket]]) -> None:
    ours, theirs = make()
    with ours, theirs, pytest.raises(ValueError, match="SOCK_SEQPACKET"):
        PacketLink(ours, Exited)
