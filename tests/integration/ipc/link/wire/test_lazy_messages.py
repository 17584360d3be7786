"""Messages that wait for others, so that many leave in one write."""

from __future__ import annotations

import asyncio

import pytest

from ipc.link.wire import channel as channel_module
from ipc.link.wire.channel import SEND_HIGH_WATER_BYTES
from tests.support.channels import KERNEL_BYTES, Cancel, Done, Run, Work, channel_and_raw, channel_pair, frame_of, turns

pytestmark = pytest.mark.timeout(30)


def test_lazy_messages_leave_with_the_next_one_in_order(run: Run[None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "LAZY_S", 1e6)

    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            await master.send(Work(0), lazy=True)
            master.post(Work(1), lazy=True)
            await turns()
            with pytest.raises(BlockingIOError):
                raw.recv(1)
            master.post(Cancel(2))
            await turns()
            assert raw.recv(KERNEL_BYTES) == b"".join(map(frame_of, (Work(0), Work(1), Cancel(2))))
            assert master.pending_bytes == 0

    run(conversation())


def test_lazy_messages_leave_alone_after_a_while(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            for number in range(2):
                await worker.send(Done(number), lazy=True)
                assert await master.receive() == Done(number)

    run(conversation())


def test_a_lazy_message_is_written_before_its_sender_closes(run: Run[None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "LAZY_S", 1e6)

    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            await worker.send(Done(1), lazy=True)
            worker.close()
            await worker.wait_closed()
            assert await master.receive() == Done(1)
            assert await master.receive() is None

    run(conversation())


def test_a_sender_of_many_lazy_messages_waits_for_room_no_longer_than_for_the_write(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_pair() as (master, worker):
            sending = asyncio.gather(*(worker.send(Done(n, bytes(SEND_HIGH_WATER_BYTES)), lazy=True) for n in range(3)))
            for number in range(3):
                done = await master.receive()
                assert done is not None
                assert done.number == number
            await sending

    run(conversation())


def test_a_channel_that_closes_with_lazy_messages_for_a_peer_that_is_gone(run: Run[None]) -> None:
    async def conversation() -> None:
        async with channel_and_raw() as (master, raw):
            master.post(Work(0), lazy=True)
            raw.close()
            assert await master.receive() is None
            assert master.pending_bytes == 0

    run(conversation())
