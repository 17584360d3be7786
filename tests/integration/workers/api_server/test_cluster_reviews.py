"""The kubelet's port asks the cluster who somebody is, and what that one may do."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from ipc.host.clock import Instant, SystemClock
from ipc.link.wire.server_settings import ServerSettings
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.server import KubeApiServer
from workers.api_server.access.filter import AccessFilter
from workers.api_server.access.reviews import ALLOWED_S, DENIED_S, TOKEN_S
from workers.api_server.access.webhook import ClusterReviews
from workers.fs.fs_executor import FsExecutor

pytestmark = pytest.mark.timeout(60)

TOKENS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class SteppedClock:
    """Goes on when it is told."""

    def __init__(self) -> None:
        self.mono = 0.0

    def now(self) -> Instant:
        return Instant(self.mono, SystemClock().now().wall)


class Port:
    """A server with the filter before it, and the cluster behind."""

    def __init__(self, server: KubeApiServer, client: TestClient[web.Request, web.Application]) -> None:
        self.server = server
        self.client = client
        self.clock = SteppedClock()

    async def get(self, path: str, token: str = "") -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.client.get(path, headers=headers) as answer:
            return answer.status, await answer.text()

    def asked(self, path: str) -> int:
        return sum(request.path == path for request in self.server.requests)

    @property
    def subresources(self) -> list[str]:
        reviews = [request.json for request in self.server.requests if request.path == ACCESS]
        return [review["spec"]["resourceAttributes"]["subresource"] for review in reviews]


@contextlib.asynccontextmanager
async def port(directory: Path) -> AsyncIterator[Port]:
    async def ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async with KubeApiServer() as server:
        kubeconfig = str(server.kubeconfig(directory))
        settings = ServerSettings(kubeconfig=kubeconfig, reviews_tokens=True, reviews_access=True)
        clock = SteppedClock()
        reviews = ClusterReviews(kubeconfig, "n1", clock, 0.0, 0)
        app = web.Application(middlewares=[AccessFilter(settings, FsExecutor(), reviews).filtered])
        app.router.add_route("*", "/{any:.*}", ok)
        app.on_cleanup.append(reviews.closed)
        async with TestClient(TestServer(app)) as client:
            made = Port(server, client)
            made.clock = clock
            yield made


async def test_who_may_is_served_and_the_cluster_is_asked_once(tmp_path: Path) -> None:
    async with port(tmp_path) as at:
        token = at.server.tokens.add(User("prometheus", ("system:authenticated",)))
        at.server.access.allow("prometheus", "get", "nodes/metrics")
        for _ in range(3):
            assert await at.get("/metrics", token) == (200, "ok")
        assert (at.asked(TOKENS), at.asked(ACCESS)) == (1, 1)
        at.clock.mono += TOKEN_S
        await at.get("/metrics", token)
        assert (at.asked(TOKENS), at.asked(ACCESS)) == (2, 1)
        at.clock.mono += ALLOWED_S
        await at.get("/metrics", token)
        assert at.asked(ACCESS) == 2


async def test_who_may_not_is_told_what_was_asked_the_narrow_permission_first(tmp_path: Path) -> None:
    async with port(tmp_path) as at:
        token = at.server.tokens.add(User("norights", ("system:authenticated",)))
        words = "Forbidden (user=norights, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
        assert await at.get("/pods", token) == (403, words)
        assert at.subresources == ["pods", "proxy"]
        at.server.access.allow("norights", "get", "nodes/proxy")
        assert (await at.get("/pods", token))[0] == 403, "the refusal counts for a while"
        at.clock.mono += DENIED_S
        assert (await at.get("/pods", token))[0] == 200
        assert at.subresources == ["pods", "proxy"] * 2


async def test_a_token_that_is_nobodys(tmp_path: Path) -> None:
    async with port(tmp_path) as at:
        assert await at.get("/pods", "wrong") == (401, "Unauthorized")
        assert await at.get("/pods", "wrong") == (401, "Unauthorized")
        assert await at.get("/pods") == (401, "Unauthorized")
        assert (at.asked(TOKENS), at.asked(ACCESS)) == (2, 0)


async def test_a_cluster_that_does_not_answer_lets_nobody_in(tmp_path: Path) -> None:
    async with port(tmp_path) as at:
        token = at.server.tokens.add(User("u", ("system:authenticated",)))
        assert (await at.get("/pods", token))[0] == 403
        await at.server.stop()
        at.clock.mono += DENIED_S
        error = "Authorization error (user=u, verb=get, resource=nodes, subresource=pods)"
        assert await at.get("/pods", token) == (500, error)
        at.clock.mono += TOKEN_S
        assert await at.get("/pods", token) == (401, "Unauthorized")
