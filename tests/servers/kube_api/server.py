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

from tests.servers.kube_api import failures
from tests.servers.kube_api.access import Access, Attributes
from tests.servers.kube_api.authority import Authority, shared_authority, user_of
from tests.servers.kube_api.failures import JsonObject, Refusal
from tests.servers.kube_api.faults import Dropped, Faults
from tests.servers.kube_api.kubeconfig import write_kubeconfig
from tests.servers.kube_api.options import DeleteOptions, delete_options, list_options
from tests.servers.kube_api.requests import Request, User
from tests.servers.kube_api.resources import BY_PLURAL
from tests.servers.kube_api.routes import Route, route_of
from tests.servers.kube_api.signing import Signing
from tests.servers.kube_api.store import Store
from tests.servers.kube_api.tokens import Tokens
from tests.servers.kube_api.watching import Scope, Watch, line, listed
from tests.servers.kube_api.writes import Writes

_ADDRESS = "127.0.0.1"
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
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
    ) -> None:
        """Without TLS, who has no token is `plain_user`. `now` dates objects and ends tokens."""
        self.authority = authority or shared_authority()
        self.store = Store(now)
        self.access = Access(self.store)
        self.tokens = Tokens(now)
        self.signing = Signing(self.store, self.authority)
        self.writes = Writes(self.store, self.access, self.tokens, self.signing, now)
        self.requests: list[Request] = []
        self.faults = Faults(self.store, self._break_watches, self._expire_watches)
        self.bookmark_interval_s = 60.0
        self.watch_list = True
        """Whether it takes sendInitialEvents, as servers from 1.34 on do."""
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
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{_ADDRESS}:{self._port}"

    async def start(self) -> None:
        """Listens, after a `stop` on the same port as before."""
        context = None
        if self._tls:
            context = self.authority.server_context(Path(self._directory.name), [_ADDRESS])
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None, handler_cancellation=True), shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, _ADDRESS, self._port, ssl_context=context, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """As if it were killed: connections end, new ones are refused."""
        if self._runner is not None:
            self._break_watches()
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self, directory: Path, user: str = "system:node:n1", credential: str = "certificate") -> Path:
        """A file in a directory for a user, with a client certificate, a ``token``, or a token that is known."""
        groups = ("system:nodes",) if user.startswith("system:node:") else ()
        return write_kubeconfig(self, directory, User(user, groups), credential)

    def schedule(self, pod: JsonObject, node: str = "n1") -> JsonObject:
        """Creates a pod as a user and binds it as the scheduler does; the pod as it is then. Raises Refusal."""
        metadata = {"namespace": "default"} | pod.get("metadata", {})
        body = {"kind": "Pod", "apiVersion": "v1"} | pod | {"metadata": metadata}
        made = self.writes.create(BY_PLURAL["pods"], metadata["namespace"], body, ADMIN)
        binding = {"kind": "Binding", "apiVersion": "v1", "target": {"kind": "Node", "name": node}}
        self.writes.below_pod(metadata["namespace"], made["metadata"]["name"], "binding", binding, ADMIN)
        return self.store.get("pods", metadata["namespace"], made["metadata"]["name"])

    def delete_pod(self, name: str, namespace: str = "default", grace_s: int | None = None) -> JsonObject:
        """Deletes a pod as a user; the pod as it is then, or was. Raises Refusal."""
        return self.writes.delete(BY_PLURAL["pods"], namespace, name, DeleteOptions(grace_s, "", ""), ADMIN)

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
        resource = route.resource
        fields = request.query.get("fieldSelector", "")
        self.access.check(
            Attributes(
                user=user,
                verb=route.verb,
                resource=resource.plural,
                subresource=route.below,
                group=resource.group,
                namespace=route.namespace,
                name=route.name,
                fields=fields,
            )
        )
        route.check()
        _check_accepted(request)
        if route.verb in ("list", "watch"):
            return await self._listed(raw, request, route)
        code, body = self._done(request, route, user)
        answer = await self._answered_with(request, code, body)
        if resource.plural == "certificatesigningrequests" and route.verb == "create":
            self.signing.settle(body["metadata"]["name"])
        return answer

    def _done(self, request: Request, route: Route, user: User) -> tuple[int, JsonObject]:
        """Whatever answers with one object. Raises Refusal."""
        resource, namespace, name, below = route.resource, route.namespace, route.name, route.below
        match route.verb:
            case "get":
                return 200, self.store.get(resource.plural, namespace, name)
            case "create":
                return 201, self._created(route, _decoded(request, resource.kind), user)
            case "update":
                return self.writes.update(resource, namespace, name, below, _decoded(request, resource.kind), user)
            case "patch":
                media = request.content_type.partition(";")[0]
                return 200, self.writes.patch(resource, namespace, name, below, request.body, media, user)
            case "deletecollection":
                scope = Scope(resource, namespace, list_options(request.query))
                found = listed(self.store, scope)
                for item in found["items"]:
                    options = delete_options(request.query, _deletion(request))
                    self.writes.delete(resource, namespace, item["metadata"]["name"], options, user)
                return 200, found
        return 200, self.writes.delete(
            resource, namespace, name, delete_options(request.query, _deletion(request)), user
        )

    def _created(self, route: Route, body: JsonObject, user: User) -> JsonObject:
        if route.below == "token":
            return self.writes.token(route.namespace, route.name, body, user)
        if route.below:
            return self.writes.below_pod(route.namespace, route.name, route.below, body, user)
        return self.writes.create(route.resource, route.namespace, body, user)

    async def _listed(self, raw: web.BaseRequest, request: Request, route: Route) -> web.StreamResponse:
        options = list_options(request.query)
        if options.initial_events and not self.watch_list:
            said = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            cause = failures.not_permitted("sendInitialEvents", said)
            raise failures.invalid("ListOptions", "", [cause], "meta.k8s.io")
        scope = Scope(route.resource, route.namespace, options)
        if route.verb == "list":
            return await self._answered_with(request, 200, listed(self.store, scope))
        watch = Watch(self.store, scope, self.bookmark_interval_s)
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


def _check_accepted(request: Request) -> None:
    accepted = [part.partition(";")[0].strip() for part in request.headers.get("accept", "*/*").split(",")]
    if not {"application/json", "*/*", "application/*"} & set(accepted):
        raise failures.not_acceptable()


def _decoded(request: Request, kind: str) -> JsonObject:
    """Raises Refusal."""
    if len(request.body) > failures.MAX_BODY:
        raise failures.too_large()
    if request.content_type.partition(";")[0] not in ("application/json", ""):
        raise failures.unknown_body()
    try:
        found = json.loads(request.body)
    except ValueError:
        said = (
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error"
        )
        raise failures.bad_request(said) from None
    if not isinstance(found, dict):
        raise failures.bad_request(f"the object provided is unrecognized (must be of type {kind})")
    return found


def _deletion(request: Request) -> JsonObject | None:
    return _decoded(request, "DeleteOptions") if request.body else None
