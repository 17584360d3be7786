"""An API server as a node sees it, in this process: strict as kube-apiserver 1.36 where a kubelet could be wrong, with
a record of what was asked and with faults. TLS as the real one: a client certificate or a token says who asks."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from aiohttp import web

from tests.support.servers.kube_api import failures
from tests.support.servers.kube_api.access import Attributes
from tests.support.servers.kube_api.api import ADMIN, Api
from tests.support.servers.kube_api.authority import Authority, shared_authority, user_of
from tests.support.servers.kube_api.failures import JsonObject, Refusal
from tests.support.servers.kube_api.faults import Dropped, Faults, Garbled
from tests.support.servers.kube_api.kubeconfig import write_kubeconfig
from tests.support.servers.kube_api.lies import Lie
from tests.support.servers.kube_api.requests import Request, User
from tests.support.servers.kube_api.routes import Route, route_of
from tests.support.servers.kube_api.watching import Watch, line

LOOPBACK = "127.0.0.1"
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2", "platform": "linux/amd64"}


def utc_now() -> datetime:
    return datetime.now(UTC)


class KubeApiServer:
    """``async with KubeApiServer() as server``: it listens until the block ends."""

    def __init__(
        self,
        *,
        tls: bool = True,
        authority: Authority | None = None,
        now: Callable[[], datetime] = utc_now,
        plain_user: User = ADMIN,
        address: str = LOOPBACK,
        names: tuple[str, ...] = (),
    ) -> None:
        """Without TLS, who has no token is `plain_user`. `now` dates objects and ends tokens. ``names``: further
        addresses that its certificate is for."""
        self.authority = authority or shared_authority()
        self.api = Api(self.authority, now)
        self.store, self.access, self.tokens = self.api.store, self.api.access, self.api.tokens
        self.signing, self.writes = self.api.signing, self.api.writes
        self.requests: list[Request] = []
        self.first_told: dict[str, float] = {}
        """UID to when a watch was first told of the object, seconds on the loop's clock."""
        self.faults = Faults(self.store, self._break_watches, self._expire_watches)
        self._address, self._names = address, names
        self._tls = tls
        self._plain_user = plain_user
        self._watches: dict[Watch, web.StreamResponse] = {}
        self._runner: web.ServerRunner | None = None
        self._port = 0
        self._directory = tempfile.TemporaryDirectory()
        self._asked = asyncio.Condition()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.faults.heal()
        await self.stop()
        self._directory.cleanup()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self._address, self._port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._address}:{self._port}"

    async def start(self) -> None:
        """Listens, after a `stop` on the same port as before."""
        context = None
        if self._tls:
            context = self.authority.server_context(Path(self._directory.name), [self._address, *self._names])
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None, handler_cancellation=True), shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._address, self._port, ssl_context=context, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """As if it were killed: connections end, new ones are refused."""
        if self._runner is not None:
            self._break_watches()
            if isinstance(self._runner.server, web.Server):
                for connection in self._runner.server.connections:
                    # A close would wait for the client's end of TLS, up to 30 s, beyond the end of this loop.
                    if connection.transport is not None:
                        connection.transport.abort()
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self, directory: Path, user: str = "system:node:n1", credential: str = "certificate") -> Path:
        """A file in a directory for a user, with a client certificate, a ``token``, or a token that is known."""
        groups = ("system:nodes",) if user.startswith("system:node:") else ()
        return write_kubeconfig(self, directory, User(user, groups), credential)

    def schedule(self, pod: JsonObject, node: str = "n1") -> JsonObject:
        """See `Api.schedule`."""
        return self.api.schedule(pod, node)

    def delete_pod(self, name: str, namespace: str = "default", grace_s: int | None = None) -> JsonObject:
        """See `Api.delete_pod`."""
        return self.api.delete_pod(name, namespace, grace_s)

    def bookmark(self) -> None:
        """Sends one to every watch that takes them."""
        for watch in self._watches:
            watch.bookmark()

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    async def asked(self, test: Callable[[Request], bool], times: int = 1) -> list[Request]:
        """Waits until so many requests pass the test and have an answer that begins; those requests."""
        async with self._asked:
            await self._asked.wait_for(lambda: len(self._answered(test)) >= times)
            return self._answered(test)

    async def ended(self, watch: Request) -> None:
        """Waits until a watch is over."""
        async with self._asked:
            await self._asked.wait_for(lambda: watch.has_ended)

    def _answered(self, test: Callable[[Request], bool]) -> list[Request]:
        return [request for request in self.requests if request.code and test(request)]

    def _break_watches(self) -> None:
        for response in tuple(self._watches.values()):
            _abort(response)

    def _expire_watches(self) -> None:
        for watch in self._watches:
            watch.expire()

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        request = Request(
            verb=raw.method,
            path=raw.path,
            query=dict(raw.query),
            content_type=raw.headers.get("Content-Type", ""),
            body=await raw.read(),
            user="",
            headers={name.lower(): value for name, value in raw.headers.items()},
            at=asyncio.get_running_loop().time(),
        )
        self.requests.append(request)
        try:
            drops_answer = await self.faults.before(request)
            user = self._user(raw)
            request.user = user.name
            answer = await self._answer(raw, request, user)
            if not drops_answer:
                return answer
        except Dropped:
            pass
        except Garbled as garbled:
            await self._begun(request, 200)
            return await garbled.lie.tell(raw)
        except Refusal as refusal:
            return await self._answered_with(request, refusal.code, refusal.status(), refusal.headers)
        if raw.transport is not None:
            raw.transport.abort()
        return web.Response()

    async def _answered_with(
        self, request: Request, code: int, body: JsonObject, headers: dict[str, str] | None = None
    ) -> web.Response:
        text = json.dumps(body, separators=(",", ":")).encode() + b"\n"
        more = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"} | (headers or {})
        await self._begun(request, code)
        return web.Response(status=code, body=text, headers=more)

    async def _begun(self, request: Request, code: int) -> None:
        request.code = code
        async with self._asked:
            self._asked.notify_all()

    async def _over(self, watch: Request) -> None:
        watch.has_ended = True
        async with self._asked:
            self._asked.notify_all()

    def _user(self, raw: web.BaseRequest) -> User:
        """Raises Refusal (401)."""
        scheme, _, token = raw.headers.get("Authorization", "").partition(" ")
        if scheme == "Bearer":
            user = self.tokens.user(token)
            if user is None:
                raise failures.unauthorized()
            return user
        tls = raw.transport.get_extra_info("ssl_object") if raw.transport else None
        if tls is None:
            return self._plain_user
        certificate = tls.getpeercert()
        return user_of(certificate) if certificate else ANONYMOUS

    async def _answer(self, raw: web.BaseRequest, request: Request, user: User) -> web.StreamResponse:
        """Raises Refusal."""
        route = route_of(request)
        if route is None:
            return await self._other(request, user)
        if lie := self.faults.liar.next_for(route):
            raise Garbled(lie)
        found = self.api.answer(request, route, user)
        if isinstance(found, Watch):
            return await self._watched(raw, request, found, route)
        if route.verb == "list" and self.faults.liar.in_lists:
            raise Garbled(Lie("items", self.faults.liar.with_items(route, found[1])))
        answer = await self._answered_with(request, *found)
        if route.resource.plural == "certificatesigningrequests" and route.verb == "create":
            self.signing.settle(found[1]["metadata"]["name"])
        return answer

    async def _watched(self, raw: web.BaseRequest, request: Request, watch: Watch, route: Route) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        await response.prepare(raw)
        self._watches[watch] = response
        await self._begun(request, 200)
        try:
            with suppress(ConnectionError):
                async for event in watch.events():
                    await self.faults.reachable()
                    if uid := event["object"].get("metadata", {}).get("uid"):
                        self.first_told.setdefault(uid, asyncio.get_running_loop().time())
                    for garbage in self.faults.lines(route):
                        await response.write(garbage)
                    await response.write(line(event))
        finally:
            self._watches.pop(watch, None)
            await self._over(request)
        return response

    async def _other(self, request: Request, user: User) -> web.StreamResponse:
        """Paths that are no resource."""
        if request.path not in ("/version", "/healthz", "/livez", "/readyz"):
            if request.path.startswith("/api"):
                raise failures.no_such_path()
            self.access.check(Attributes(user, "get", path=request.path))
            raise failures.no_such_path()
        if request.verb != "GET":
            raise failures.not_allowed()
        if request.path == "/version":
            return await self._answered_with(request, 200, _VERSION)
        await self._begun(request, 200)
        return web.Response(text="ok")


def _abort(response: web.StreamResponse) -> None:
    """Ends the connection in the middle of the stream."""
    request = response._req
    if request is not None and request.transport is not None:
        request.transport.abort()
