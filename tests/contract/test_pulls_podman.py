"""Podman's pulls: the facts that the puller is built on."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ipc.k8s.podobjects.registry_login import RegistryLogin
from tests.support import registry
from tests.support.podman_service import PodmanService, running_service
from tests.support.podman_service import podman as command_line
from tests.support.registry import PASSWORD, USER, Proxy, Registry
from workers.kubecontainer.runtime import ErrorKind, RuntimeCallError
from workers.libpod.image_list import list_images
from workers.podman import PodmanRuntime

pytestmark = pytest.mark.podman

DEADLINE_S = 20.0
QUIET_S = 1.0


class Shop(NamedTuple):
    """A registry behind a login, a way to it that can be slow, and a Podman that knows both as plain HTTP."""

    registry: Registry
    proxy: Proxy
    socket: str
    logins: str
    """A file for REGISTRY_AUTH_FILE; the service itself knows the login of the proxy, by DOCKER_CONFIG."""


@pytest.fixture(scope="module")
def shop(podman_service: PodmanService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    if reason := registry.why_not():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("shop")
    with contextlib.ExitStack() as stack:
        closed = stack.enter_context(registry.registry(directory, login=True))
        proxy = stack.enter_context(registry.proxy(closed))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in registry.registries_conf(directory, closed.address, proxy.address).items():
            patch.setenv(name, value)
        docker = directory / "docker"
        docker.mkdir()
        Path(registry.logins(directory, {proxy.address: PASSWORD})["REGISTRY_AUTH_FILE"]).rename(docker / "config.json")
        patch.setenv("DOCKER_CONFIG", str(docker))
        logins = registry.logins(directory, {closed.address: PASSWORD})["REGISTRY_AUTH_FILE"]
        service = stack.enter_context(running_service(tmp_path_factory.mktemp("service")))
        yield Shop(closed, proxy, str(service), logins)


@contextlib.asynccontextmanager
async def runtime(shop: Shop, auth_file: str = "") -> AsyncIterator[PodmanRuntime]:
    made = PodmanRuntime(shop.socket, "test-pulls", auth_file=auth_file)
    try:
        yield made
    finally:
        await made.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - another thread's state
            await asyncio.sleep(0.02)


def ignore(words: str) -> None:
    """Nobody hears of this pull's progress."""


async def test_a_pull_tells_its_steps_and_ends_with_the_image(shop: Shop) -> None:
    digest, heard = shop.registry.push("steps", "1"), list[str]()
    reference = f"{shop.proxy.address}/steps:1"
    async with runtime(shop) as podman:
        id = await podman.pull_image(reference, heard.append)
        image = await podman.inspect_image(reference)
    assert image is not None
    assert (image.id, image.digests) == (id, (f"{shop.proxy.address}/steps@{digest}",))
    assert heard[0].startswith(f"Trying to pull {reference}")
    assert any(words.startswith("Copying blob sha256:") for words in heard)


async def test_a_login_that_goes_along_is_the_one_that_counts(shop: Shop) -> None:
    shop.registry.push("private", "1")
    reference = f"{shop.registry.address}/private:1"
    good, wrong = (RegistryLogin(username=USER, password=password) for password in (PASSWORD, "a wrong one"))
    async with runtime(shop) as podman:
        for login in (None, wrong):
            with pytest.raises(RuntimeCallError, match=r"unauthorized|authentication") as refused:
                await podman.pull_image(reference, ignore, login)
            assert refused.value.kind is ErrorKind.PULL
            assert "a wrong one" not in str(refused.value)
        await podman.pull_image(reference, ignore, good)
        with pytest.raises(RuntimeCallError, match=r"unauthorized|authentication"):
            await podman.pull_image(f"{shop.proxy.address}/private:1", ignore, wrong)


class Redirecting(http.server.BaseHTTPRequestHandler):
    """A registry that sends everybody elsewhere, with somebody's password."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", "http://somebody:hush@127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


async def test_who_somebody_is_in_a_url_is_told_to_nobody(
    podman_service: PodmanService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = list[str]()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server, contextlib.ExitStack() as stack:
        threading.Thread(target=server.serve_forever).start()
        stack.callback(server.shutdown)
        address = f"127.0.0.1:{server.server_port}"
        for name, value in registry.registries_conf(tmp_path, address).items():
            monkeypatch.setenv(name, value)
        podman = PodmanRuntime(str(stack.enter_context(running_service(tmp_path))), "test-pulls")
        try:
            with pytest.raises(RuntimeCallError) as refused:
                await podman.pull_image(f"{address}/a:1", heard.append)
        finally:
            await podman.close()
    assert refused.value.kind is ErrorKind.PULL
    assert address in refused.value.message
    assert [word for word in ("somebody", "hush") if word in f"{refused.value} {heard}"] == []


async def test_a_digest_names_an_image_with_and_without_a_tag(shop: Shop) -> None:
    digest = shop.registry.push("digests", "1")
    name = f"{shop.proxy.address}/digests"
    async with runtime(shop) as podman:
        id = await podman.pull_image(f"{name}@{digest}", ignore)
        assert await podman.pull_image(f"{name}:other@{digest}", ignore) == id, "the tag does not count"
        for reference in (f"{name}@{digest}", f"{name}:other@{digest}"):
            found = await podman.inspect_image(reference)
            assert found is not None
            assert found.id == id
        with pytest.raises(RuntimeCallError, match=r"manifest unknown|not found"):
            await podman.pull_image(f"{name}@sha256:{'0' * 64}", ignore)


async def test_the_node_names_images_by_what_was_pulled(shop: Shop) -> None:
    """Podman counts a digest among the tags, and tells a digest of a name that no registry has."""
    digest, other = shop.registry.push("named", "1"), shop.registry.push("alias", "1")
    canonical, tagged = f"{shop.proxy.address}/named@{digest}", f"{shop.proxy.address}/alias:1"
    local = f"localhost/{Path(shop.logins).parent.name}:1"
    async with runtime(shop) as podman:
        by_digest = await podman.pull_image(canonical, ignore)
        by_tag = await podman.pull_image(tagged, ignore)
    command_line("tag", tagged, local)
    try:
        found = {image.id: image for image in await list_images(shop.socket)}
    finally:
        command_line("untag", local, local)
    assert (found[by_digest].repo_tags, found[by_digest].repo_digests) == ((), (canonical,))
    assert sorted(found[by_tag].repo_tags) == sorted((tagged, local))
    assert found[by_tag].repo_digests == (f"{shop.proxy.address}/alias@{other}",)


async def test_closing_the_connection_stops_the_transfer(shop: Shop) -> None:
    shop.registry.push("huge", "1", layer_bytes=8_000_000)
    shop.proxy.bytes_per_s, before = 200_000, shop.proxy.passed_bytes
    reference = f"{shop.proxy.address}/huge:1"
    async with runtime(shop) as podman:
        pulling = asyncio.create_task(podman.pull_image(reference, ignore))
        await until(lambda: shop.proxy.passed_bytes > before + 200_000)
        pulling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pulling
        await until(lambda: shop.proxy.open_connections == 0)
        passed = shop.proxy.passed_bytes
        await asyncio.sleep(QUIET_S)
        assert (shop.proxy.passed_bytes, shop.proxy.open_connections) == (passed, 0)
        assert await podman.inspect_image(reference) is None
        shop.proxy.bytes_per_s = 0
        assert await podman.pull_image(reference, ignore), "and the next one is none the worse for it"


async def test_the_service_knows_the_user_s_logins_and_takes_those_of_another_file_along(shop: Shop) -> None:
    shop.registry.push("logins", "1")
    async with runtime(shop) as podman:
        assert await podman.pull_image(f"{shop.proxy.address}/logins:1", ignore)
        with pytest.raises(RuntimeCallError) as caught:
            await podman.pull_image(f"{shop.registry.address}/logins:1", ignore)
        assert caught.value.kind is ErrorKind.PULL
        assert "authentication required" in caught.value.message
    async with runtime(shop, shop.logins) as podman:
        assert await podman.pull_image(f"{shop.registry.address}/logins:1", ignore)
    wrong = Path(shop.logins).with_name("wrong.json")
    wrong.write_text(json.dumps({"auths": {shop.registry.address: {"auth": "dGVzdGVyOmh1c2g="}}}))
    async with runtime(shop, str(wrong)) as podman:
        with pytest.raises(RuntimeCallError) as caught:
            await podman.pull_image(f"{shop.registry.address}/logins:1", ignore)
    assert "invalid username/password" in caught.value.message or "authentication required" in caught.value.message
    assert "hush" not in caught.value.message
