"""The log of requests, which is switched while the API server runs."""

from __future__ import annotations

import logging
import os
import re
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from ipc.host.log.entry import entry_of
from ipc.host.log.formats import as_text
from tests.support.api_server import Master, eventually, pod_changed
from workers.api_server.core.request_keys import USER
from workers.api_server.http_log import HTTP_LOG, RequestLog


def requests(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record.fields for record in caplog.records if record.getMessage() == "HTTP"]  # type: ignore[attr-defined]


async def test_nothing_is_logged_until_it_is_wanted_also_of_a_connection_that_was_there(
    master: Master, caplog: pytest.LogCaptureFixture
) -> None:
    master.ready(pod_changed(1, "web"))
    caplog.set_level(logging.INFO, HTTP_LOG.name)
    async with master.http.get("/version") as answer:
        await answer.read()
    assert requests(caplog) == []
    caplog.set_level(logging.DEBUG, HTTP_LOG.name)
    async with master.http.get("/api/v1/pods") as answer:
        body = await answer.read()
    await eventually(lambda: len(requests(caplog)) == 1, "the request is logged")
    (found,) = requests(caplog)
    assert re.fullmatch(r"[0-9]+\.[0-9]{3}ms", found.pop("latency"))
    assert found.pop("bytes") > len(body), "with the head"
    assert found.pop("userAgent").startswith("Python/")
    assert found == {
        "verb": "GET",
        "URI": "/api/v1/pods",
        "peerPID": os.getpid(),
        "peerUID": os.geteuid(),
        "resp": 200,
    }


async def test_no_secret_and_no_second_line(master: Master, caplog: pytest.LogCaptureFixture) -> None:
    master.ready()
    caplog.set_level(logging.DEBUG, HTTP_LOG.name)
    url = "/api/v1/namespaces/a%0a2026 ERROR master: forged/pods/x/log?token=planted&command=planted"
    headers = {"Authorization": "Bearer planted", "Cookie": "planted"}
    async with master.http.get(url, headers=headers) as answer:
        assert answer.status == 404
    await eventually(lambda: len(requests(caplog)) == 1, "the request is logged")
    (record,) = [each for each in caplog.records if each.getMessage() == "HTTP"]
    line = as_text(entry_of(record, "api-1"))
    assert "\n" not in line
    assert "planted" not in line
    assert 'verb="GET" URI="/api/v1/namespaces/a\\\\n2026 ERROR' in line


async def test_over_tcp_the_client_is_an_address_and_the_user_who_was_authenticated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer(request: web.Request) -> web.Response:
        request[USER] = "kubelet-client"
        return web.Response()

    caplog.set_level(logging.DEBUG, HTTP_LOG.name)
    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, access_log=HTTP_LOG, access_log_class=RequestLog)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{runner.addresses[0][1]}/"):
            await eventually(lambda: len(requests(caplog)) == 1, "the request is logged")
    finally:
        await runner.cleanup()
    found = requests(caplog)[0]
    assert (found["srcIP"], found["user"], "peerPID" in found) == ("127.0.0.1", "kubelet-client", False)


async def test_a_watch_is_logged_when_it_ends(master: Master, caplog: pytest.LogCaptureFixture) -> None:
    master.ready(pod_changed(1, "web"))
    caplog.set_level(logging.DEBUG, HTTP_LOG.name)
    async with master.http.get("/api/v1/pods", params={"watch": "true", "timeoutSeconds": "1"}) as answer:
        assert await answer.content.readline()
        await answer.read()
    await eventually(lambda: len(requests(caplog)) == 1, "the watch is logged")
    assert requests(caplog)[0]["resp"] == 200
    assert float(requests(caplog)[0]["latency"].removesuffix("ms")) > 900, "not when it began"
