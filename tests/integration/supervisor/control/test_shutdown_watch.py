"""logind over a real bus: the inhibitor, the notice, and who may give it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from supervisor.control.logind import MANAGER, PATH, SIGNAL, Logind, LogindError
from supervisor.control.shutdown_watch import ShutdownWatch
from tests.support.api_server import eventually
from tests.support.login1 import Login1, needs_bus, system_bus

pytestmark = needs_bus


@pytest.fixture
def login1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Login1]:
    with system_bus(tmp_path, delay_s=5) as made:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", made.address)
        yield made


@asynccontextmanager
async def watching(wanted_s: float, notice: Callable[[float | None], None]) -> AsyncIterator[ShutdownWatch]:
    watch = ShutdownWatch(wanted_s, notice)
    task = asyncio.create_task(watch.run())
    try:
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_the_host_waits_until_the_pods_have_ended(login1: Login1) -> None:
    told: list[float | None] = []
    async with watching(5.0, told.append) as watch:
        await eventually(lambda: login1.is_held, "the inhibitor is held")
        assert login1.asked == [("shutdown", "rootlet", "delay")]
        await eventually(lambda: told == [None], "the host stays up")
        login1.tell(active=True)
        await eventually(lambda: told == [None, 5.0], "that was told")
        assert login1.is_held
        watch.release()
        await eventually(lambda: not login1.is_held, "the inhibitor is released")
        login1.tell(active=False)
        await eventually(lambda: told == [None, 5.0, None], "that was told")
        await eventually(lambda: login1.is_held, "the inhibitor is held")
    await eventually(lambda: not login1.is_held, "the inhibitor is released")


async def test_only_logind_says_that_the_host_goes_down(login1: Login1) -> None:
    """Any client of the bus may send a signal of that name, to everybody or to one connection."""
    from dbus_fast import BusType, Message, MessageType
    from dbus_fast.aio import MessageBus

    told: list[bool] = []
    logind = await Logind.connect()
    stranger = await MessageBus(bus_type=BusType.SYSTEM).connect()
    try:
        await logind.listen(told.append)
        for destination in (None, logind._bus.unique_name):
            forged = Message(
                message_type=MessageType.SIGNAL,
                destination=destination,
                path=PATH,
                interface=MANAGER,
                member=SIGNAL,
                signature="b",
                body=[True],
            )
            await stranger.send(forged)
        await logind.inhibit_delay_s()  # what was sent before it has arrived
        login1.tell(active=False)
        await eventually(lambda: told == [False], "that was told")
    finally:
        stranger.disconnect()
        await stranger.wait_for_disconnect()  # type: ignore[no-untyped-call]
        await logind.close()


async def test_a_delay_that_is_too_short_is_told(login1: Login1, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with watching(30.0, lambda _: None):
            await eventually(lambda: login1.is_held, "the inhibitor is held")
    assert "logind waits for 5s, shutdownGracePeriod is 30s" in caplog.text
    assert "InhibitDelayMaxSec=30" in caplog.text


async def test_a_delay_that_root_has_changed_meanwhile(login1: Login1, caplog: pytest.LogCaptureFixture) -> None:
    told: list[float | None] = []
    async with watching(5.0, told.append):
        await eventually(lambda: told == [None], "the host stays up")
        login1.reload(2.0)
        login1.tell(active=True)
        await eventually(lambda: told == [None, 2.0], "that was told")
    assert "logind waits for 2s, shutdownGracePeriod is 5s" in caplog.text


async def test_a_host_that_goes_down_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """logind gives no inhibitor then, and another one when the host stays up after all."""
    told: list[float | None] = []
    with system_bus(tmp_path, preparing=True) as login1:
        monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", login1.address)
        async with watching(5.0, told.append):
            await eventually(lambda: told == [5.0], "that was told")
            assert not login1.asked
            login1.tell(active=False)
            await eventually(lambda: told == [5.0, None], "that was told")
            await eventually(lambda: login1.is_held, "the inhibitor is held")


async def test_a_bus_that_goes_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'bus'}")
    told: list[float | None] = []
    async with watching(5.0, told.append):
        with system_bus(tmp_path) as login1:
            await eventually(lambda: login1.is_held and told == [None], "the inhibitor is held, and nothing goes down")
        (tmp_path / "bus").unlink(missing_ok=True)
        with system_bus(tmp_path) as login1:
            await eventually(lambda: login1.is_held and told == [None, None], "it is held again")
            login1.tell(active=True)
            await eventually(lambda: told == [None, None, 5.0], "that was told")


async def test_no_bus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'bus'}")
    with pytest.raises(LogindError, match="no system bus"):
        await Logind.connect()
    async with watching(5.0, lambda _: None):
        await eventually(
            lambda: "pods will not end in order with the host: no system bus" in caplog.text, "that was told"
        )
