"""Streams of a connection: both ends of ours against each other, and a peer that keeps to nothing."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.spdy.connection import Broken, Connection, Event, StreamClosedError
from workers.spdy.frames import (
    Data,
    Frame,
    GoAway,
    MoreHeaders,
    Ping,
    ResetStatus,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    Window,
    encode,
)
from workers.spdy.header_blocks import HeaderWriter

ERROR: Final = (("streamtype", "error"),)
MAX_STREAMS: Final = 3


class Peer:
    """Writes whatever frames it likes."""

    def __init__(self) -> None:
        self._headers = HeaderWriter()

    def bytes(self, *frames: Frame) -> bytes:
        return b"".join(encode(frame, self._headers.compressed) for frame in frames)


def events(connection: Connection, data: bytes) -> list[Event]:
    return list(connection.receive(data))


def test_a_stream_from_its_opening_to_its_end() -> None:
    server, client = Connection(), Connection(client=True)
    stream, opening = client.open(ERROR)
    assert stream == 1
    assert events(server, opening) == [SynStream(1, ERROR)]
    assert events(client, server.reply(1)) == [SynReply(1)]
    assert events(server, client.data(1, b"in", fin=True)) == [Data(1, b"in"), Data(1, fin=True)]
    assert events(client, server.data(1, b"out")) == [Data(1, b"out")]
    assert (server.open_streams, client.open_streams) == (1, 1)
    assert events(client, server.data(1, b"", fin=True)) == [Data(1, fin=True)]
    assert (server.open_streams, client.open_streams) == (0, 0)


def test_a_reset_ends_both_ways() -> None:
    server, client = Connection(), Connection(client=True)
    events(server, client.open(ERROR)[1])
    assert events(client, server.reset(1)) == [RstStream(1, ResetStatus.CANCEL)]
    assert (server.open_streams, client.open_streams) == (0, 0)
    assert server.reset(1) == server.reply(1) == b""
    with pytest.raises(StreamClosedError):
        server.data(1, b"late")
    with pytest.raises(StreamClosedError):
        client.data(1, b"late")


def test_nothing_is_sent_on_a_side_that_has_ended() -> None:
    server, client = Connection(), Connection(client=True)
    events(server, client.open(ERROR)[1])
    server.data(1, b"", fin=True)
    with pytest.raises(StreamClosedError):
        server.data(1, b"more")


def test_a_unidirectional_stream_is_not_answered() -> None:
    server = Connection()
    events(server, Peer().bytes(SynStream(1, ERROR, unidirectional=True)))
    with pytest.raises(StreamClosedError):
        server.data(1, b"x")


def test_streams_beyond_the_limit_are_refused_and_later_ones_taken_when_there_is_room() -> None:
    server, peer = Connection(max_streams=MAX_STREAMS), Peer()
    opened = events(server, peer.bytes(*(SynStream(id, ERROR) for id in (1, 3, 5, 7))))
    assert opened == [SynStream(id, ERROR) for id in (1, 3, 5)]
    assert server.answers() == Peer().bytes(RstStream(7, ResetStatus.REFUSED_STREAM))
    server.reset(3)
    assert events(server, peer.bytes(SynStream(9, ERROR))) == [SynStream(9, ERROR)]


def test_pings_of_the_other_side_are_answered_and_answers_are_no_events() -> None:
    server = Connection()
    assert events(server, Peer().bytes(Ping(7))) == [Ping(7)]
    assert server.answers() == Peer().bytes(Ping(7))
    assert server.ping() == Peer().bytes(Ping(2))
    assert server.ping() == Peer().bytes(Ping(4))
    assert events(server, Peer().bytes(Ping(2))) == []
    assert server.answers() == b""


def test_who_leaves_takes_no_more_streams() -> None:
    server, peer = Connection(), Peer()
    events(server, peer.bytes(SynStream(1, ERROR)))
    assert server.leave() == Peer().bytes(GoAway(1))
    assert events(server, peer.bytes(SynStream(3, ERROR), Data(1, b"x"))) == [Data(1, b"x")]


@pytest.mark.parametrize(
    "frames",
    [
        (SynStream(2, ERROR),),
        (SynStream(3, ERROR), SynStream(3, ERROR)),
        (SynStream(3, ERROR), SynStream(1, ERROR)),
    ],
)
def test_numbers_that_break_the_connection(frames: tuple[Frame, ...]) -> None:
    server, peer = Connection(), Peer()
    *_, last = events(server, peer.bytes(*frames))
    assert isinstance(last, Broken)
    assert server.answers().startswith(b"\x80\x03\x00\x07")
    assert events(server, peer.bytes(Ping(1))) == []


@pytest.mark.parametrize(
    "frame",
    [
        Data(9, b"x"),
        Data(9, b"x", fin=True),
        RstStream(9),
        SynReply(1),
        SynReply(9),
        MoreHeaders(9, ERROR),
        MoreHeaders(1, ERROR),
        Window(1, 0),
        Window(1, 2**31),
        Settings(),
    ],
)
def test_what_is_passed_over(frame: Frame) -> None:
    server, peer = Connection(), Peer()
    events(server, peer.bytes(SynStream(1, ERROR)))
    assert events(server, peer.bytes(frame)) == []
    assert server.answers() == b""
    assert events(server, peer.bytes(Data(1, b"x"))) == [Data(1, b"x")]


def test_data_behind_an_end_is_dropped() -> None:
    server, peer = Connection(), Peer()
    events(server, peer.bytes(SynStream(1, ERROR, fin=True)))
    assert events(server, peer.bytes(Data(1, b"late", fin=True))) == []


few = st.sampled_from((1, 2, 3, 5, 7, 9, 11))
hostile = st.one_of(
    st.builds(SynStream, few, st.just(ERROR), st.booleans(), st.booleans()),
    st.builds(Data, few, st.binary(max_size=5), st.booleans()),
    st.builds(RstStream, few),
    st.builds(SynReply, few, st.just(()), st.booleans()),
    st.builds(MoreHeaders, few, st.just(ERROR), st.booleans()),
    st.builds(Ping, few),
    st.builds(GoAway, few),
    st.builds(Window, few, st.just(0)),
)
acts = st.sampled_from(("reply", "data", "end", "reset", "ping"))


@given(st.lists(st.tuples(hostile, st.lists(st.tuples(acts, few), max_size=2)), max_size=20))
def test_any_order_of_frames_and_answers(steps: list[tuple[Frame, list[tuple[str, int]]]]) -> None:
    """A stream is told of before its data, never after its end; their number is bounded; our answers can be read."""
    server, peer, reader = Connection(max_streams=MAX_STREAMS), Peer(), Connection(client=True)
    told, ended = set[int](), set[int]()
    for frame, answers in steps:
        for event in server.receive(peer.bytes(frame)):
            match event:
                case SynStream(stream):
                    assert stream not in told
                    told.add(stream)
                case Data(stream, _, fin):
                    assert stream in told - ended
                    if fin:
                        ended.add(stream)
                case RstStream(stream):
                    assert stream in told
                    ended.add(stream)
        assert server.open_streams <= MAX_STREAMS
        assert not any(isinstance(event, Broken) for event in reader.receive(server.answers() + act(server, answers)))
        if isinstance(frame, SynStream) and server.theirs_is_open(frame.stream):
            assert frame.stream in told


def act(server: Connection, answers: list[tuple[str, int]]) -> bytes:
    made = b""
    for kind, stream in answers:
        try:
            match kind:
                case "reply":
                    made += server.reply(stream)
                case "data" | "end":
                    made += server.data(stream, b"x", fin=kind == "end")
                case "reset":
                    made += server.reset(stream)
                case _:
                    made += server.ping()
        except StreamClosedError:
            continue
    return made
