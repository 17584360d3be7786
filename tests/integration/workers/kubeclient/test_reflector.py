"""A reflector's copy against an API server that drops, forgets, refuses and is restored."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from ipc.host.clock import SystemClock
from ipc.k8s.kubeconfig.decode import decode_kubeconfig
from ipc.link.eventloop.backoff import Backoff
from ipc.link.eventloop.tasks import BackgroundTasks
from tests.support.api_server import eventually
from tests.support.servers.kube_api.server import KubeApiServer
from workers.kubeclient import reflector_state
from workers.kubeclient.client import ApiClient
from workers.kubeclient.rate_limit import RateLimit
from workers.kubeclient.reflector import Reflector
from workers.kubeclient.resources import CONFIG_MAPS

pytestmark = pytest.mark.timeout(60)

PATH: Final = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector_state, "FAILURES", Backoff(0.05, 0.2))


class Copy:
    """Values by name, and how often everything was replaced."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.replacements = 0

    def replaced(self, items: Sequence[dict[str, Any]]) -> None:
        self.replacements += 1
        self.values = {item["metadata"]["name"]: item["data"]["v"] for item in items}

    def changed(self, item: dict[str, Any]) -> None:
        self.values[item["metadata"]["name"]] = item["data"]["v"]

    def deleted(self, item: dict[str, Any]) -> None:
        del self.values[item["metadata"]["name"]]


class Followed:
    """A server, and a copy of its ConfigMaps that follows it."""

    def __init__(self, server: KubeApiServer, directory: Path) -> None:
        file = server.kubeconfig(directory, user="admin")
        server.access.allow("admin", "*", "*")
        access = decode_kubeconfig(file.read_bytes(), str(directory))
        self.server = server
        self.client = ApiClient(access, SystemClock(), user_agent="test", limit=RateLimit(0, 0))
        self.copy = Copy()
        self.reflector: Reflector[dict[str, Any]] = Reflector(
            self.client, CONFIG_MAPS, namespace="default", decode=decode, sink=self.copy
        )

    def put(self, name: str, value: str) -> None:
        wanted = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"v": value}}
        found = [it for it in self.server.store.all("configmaps") if it["metadata"]["name"] == name]
        if found:
            self.server.store.update(found[0] | {"data": {"v": value}})
        else:
            self.server.store.create(wanted | {"metadata": {"name": name, "namespace": "default"}})

    async def follows(self, **values: str) -> None:
        await eventually(lambda: self.copy.values == values, f"{values}")

    async def watches(self) -> None:
        """A watch is open on what the copy has."""
        await self.reflector.synced.wait()


def decode(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(data)
    if "v" not in (found.get("data") or {}):
        raise ValueError("no value")
    return found


@contextlib.asynccontextmanager
async def following(directory: Path, *, watch_list: bool = True) -> AsyncIterator[Followed]:
    async with KubeApiServer() as server:
        server.api.watch_list = watch_list
        followed = Followed(server, directory)
        followed.put("a", "1")
        tasks = BackgroundTasks()
        tasks.spawn(followed.reflector.run(), name="reflector")
        try:
            yield followed
        finally:
            await tasks.close()
            followed.client.close()


@pytest.mark.parametrize("watch_list", [True, False])
async def test_a_copy_follows(tmp_path: Path, watch_list: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with following(tmp_path, watch_list=watch_list) as followed:
        await followed.follows(a="1")
        followed.put("b", "1")
        followed.put("a", "2")
        await followed.follows(a="2", b="1")
        followed.server.store.delete("configmaps", "default", "a")
        await followed.follows(b="1")
        assert followed.copy.replacements == 1
    assert not caplog.messages, "a server without streaming lists is no fault"


async def test_a_watch_that_breaks_goes_on_where_it_was(tmp_path: Path) -> None:
    async with following(tmp_path) as followed:
        await followed.follows(a="1")
        followed.put("a", "2")
        await followed.follows(a="2")
        followed.server.faults.drop_watches()
        followed.put("a", "3")
        await followed.follows(a="3")


async def test_a_server_that_is_away_is_followed_when_it_is_back(tmp_path: Path) -> None:
    async with following(tmp_path) as followed:
        await followed.follows(a="1")
        await followed.server.stop()
        followed.server.store.delete("configmaps", "default", "a")
        followed.put("b", "1")
        await asyncio.sleep(0.3)  # time to make a deletion up
        assert followed.copy.values == {"a": "1"}, "nothing is deleted while nobody says so"
        await followed.server.start()
        await followed.follows(b="1")


async def test_a_forgotten_version_is_listed_anew(tmp_path: Path) -> None:
    async with following(tmp_path) as followed:
        await followed.follows(a="1")
        followed.server.faults.expire()
        followed.put("b", "1")
        await followed.follows(a="1", b="1")


async def test_a_restored_store_is_listed_when_somebody_says_so(tmp_path: Path) -> None:
    async with following(tmp_path) as followed:
        await followed.follows(a="1")
        old = followed.server.store.revision
        followed.put("a", "2")
        followed.put("b", "2")
        await followed.follows(a="2", b="2")
        followed.server.faults.restore(old)
        followed.reflector.begin_anew()
        await followed.follows(a="1")


async def test_an_object_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    async with following(tmp_path) as followed:
        followed.server.store.create(
            {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "empty", "namespace": "default"}}
        )
        followed.put("b", "1")
        await followed.follows(a="1", b="1")


@pytest.mark.parametrize("watch_list", [True, False])
async def test_a_list_with_an_object_that_cannot_be_read_takes_nothing_away(tmp_path: Path, watch_list: bool) -> None:
    """The object may be any of those that are missing. What can be read is followed, until a list is whole again."""
    async with following(tmp_path, watch_list=watch_list) as followed:
        followed.put("b", "1")
        await followed.follows(a="1", b="1")
        (stored,) = (it for it in followed.server.store.all("configmaps") if it["metadata"]["name"] == "b")
        followed.server.store.update(stored | {"data": {}})
        followed.server.faults.expire()
        followed.put("c", "1")
        await followed.follows(a="1", b="1", c="1")
        followed.put("b", "2")
        await followed.follows(a="1", b="2", c="1")
        followed.server.store.delete("configmaps", "default", "b")
        await followed.follows(a="1", c="1")


@pytest.mark.parametrize(
    "line",
    [b'{"type":"ADDED","object":null}\n', b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff"}}}\n'],
    ids=["null", "no UTF-8"],
)
async def test_an_event_that_cannot_be_read_delays_no_other(tmp_path: Path, line: bytes) -> None:
    async with following(tmp_path) as followed:
        await followed.follows(a="1")
        for number in range(2, 6):
            followed.server.faults.garble_watches(line)
            followed.put("a", str(number))
            await followed.follows(a=str(number))
        assert followed.copy.replacements == 1, "the watch has not ended for it"


async def test_one_object_alone(tmp_path: Path) -> None:
    async with following(tmp_path) as followed:
        copy = Copy()
        one: Reflector[dict[str, Any]] = Reflector(
            followed.client, CONFIG_MAPS, namespace="default", name="b", decode=decode, sink=copy
        )
        tasks = BackgroundTasks()
        tasks.spawn(one.run(), name="one")
        await one.synced.wait()
        assert copy.values == {}
        followed.put("b", "1")
        await eventually(lambda: copy.values == {"b": "1"}, "b alone")
        await tasks.close()
