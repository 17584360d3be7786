"""Verbosity through the API server: what it asks of the master, and what it shows of the board."""

from __future__ import annotations

from typing import Any

import pytest

from ipc.host.log.verbosity import Verbosity
from ipc.link.messages.api_server import Reply, SetLogLevel
from tests.support.api_server import Master
from tests.support.cli import rootlet

PATH = "/rootlet/v1/loglevel"


class Levels:
    """Answers as the master does."""

    def __init__(self, master: Master) -> None:
        self.verbosity = Verbosity()
        self._master = master
        master.answer = self.answer
        master.ready()

    def answer(self, request: Any) -> Reply:
        assert isinstance(request, SetLogLevel)
        try:
            self.verbosity = self.verbosity.changed(request.area, request.level)
        except ValueError as error:
            return Reply(request_id=request.request_id, code=400, reason="BadRequest", message=str(error))
        self._master.board.record_verbosity(self.verbosity)
        return Reply(request_id=request.request_id, code=200, results=self.verbosity.words)


async def test_a_change_is_the_masters_and_is_shown(master: Master) -> None:
    Levels(master)
    async with master.http.post(PATH, params={"area": "pleg", "level": "debug"}) as answer:
        assert (answer.status, (await answer.json())["results"]) == (200, ["info", "pleg=debug"])
    async with master.http.get(PATH) as answer:
        assert await answer.json() == {"level": "info", "areas": {"pleg": "debug"}}


async def test_before_the_master_has_said_anything_it_is_info(master: Master) -> None:
    async with master.http.get(PATH) as answer:
        assert await answer.json() == {"level": "info", "areas": {}}


@pytest.mark.parametrize(("body", "level"), [("4", "debug"), ("0", "info"), ("error", "error")])
async def test_the_kubelets_flag(master: Master, body: str, level: str) -> None:
    levels = Levels(master)
    async with master.http.put("/debug/flags/v", data=body) as answer:
        assert (answer.status, await answer.text()) == (200, f"successfully set klog.logging.verbosity to {body}")
    assert levels.verbosity.level == level


async def test_a_wrong_flag_is_refused_in_words_and_changes_nothing(master: Master) -> None:
    levels = Levels(master)
    async with master.http.put("/debug/flags/v", data=b"\xff\n") as answer:
        assert (answer.status, "is no level" in await answer.text()) == (400, True)
    assert levels.verbosity == Verbosity()


async def test_the_command(master: Master) -> None:
    Levels(master)
    changed = await rootlet(master, "loglevel", "warning", "pleg=5", "libpod=error", "pleg=default")
    assert (changed.code, changed.out) == (0, "warning\nlibpod=error\n")
    refused = await rootlet(master, "loglevel", "plg=debug")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: 'plg' is no area")
    assert (await rootlet(master, "loglevel")).out == "warning\nlibpod=error\n"
