"""Requests that change something: each becomes one message to the master, and its reply the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast, get_args

import msgspec
from aiohttp import web

from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.link.messages.api_server import (
    ApplyManifests,
    ApplyVerb,
    CollectGarbage,
    DeleteObject,
    DeletePod,
    DrainNode,
    FreezePod,
    PatchObject,
    ReloadSettings,
    Reply,
    RestartContainer,
    RestartPod,
    RestartWorker,
    StopAgent,
    UncordonNode,
)
from ipc.link.messages.pod_worker import Freeze
from workers.api_server.core.media_type import media_type
from workers.api_server.core.query import flag, integer
from workers.api_server.core.status_errors import ApiError, StatusDetails, bad_request, failure, success
from workers.api_server.store.bodies import read_body
from workers.api_server.store.site import AppState, json_answer, status_answer
from workers.api_server.store.views import action_result

MAX_GRACE_PERIOD_S: Final = 7 * 24 * 3600
"""Longest grace period that a deletion can ask for, in seconds."""
COLLECTION_TIMEOUT_S: Final = 600.0
"""How long a collection of garbage may take before the client is told that it goes on, in seconds."""
MAX_FILE_NAME_CHARS: Final = 1024
"""Longest name of a manifest, for error texts, in characters."""


_PATCH_TYPES: Final[Mapping[str, str]] = {
    "application/strategic-merge-patch+json": "strategic",
    "application/merge-patch+json": "merge",
    "application/json-patch+json": "json",
}
"""By their media types."""
_TAKEN: Final = ", ".join(_PATCH_TYPES)
_KINDS: Final = ("Pod", *ObjectKind)


class Changes:
    """The handlers."""

    def __init__(self, site: AppState) -> None:
        self._site = site

    async def delete_pod(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        grace_period_s = integer(request.query, "gracePeriodSeconds", high=MAX_GRACE_PERIOD_S)

        def message(request_id: int) -> DeletePod:
            return DeletePod(request_id=request_id, namespace=namespace, name=name, grace_period_s=grace_period_s)

        reply = await self._site.master.ask(message)
        if reply.code >= 400:
            return _refusal(reply, name, "pods")
        return status_answer(success(reply.code, name=name, kind="pods"))

    async def delete_config_object(self, request: web.Request, kind: ObjectKind) -> web.Response:
        namespace, name = request.match_info.get("namespace", ""), request.match_info["name"]

        def message(request_id: int) -> DeleteObject:
            return DeleteObject(request_id=request_id, kind=kind, namespace=namespace, name=name)

        reply = await self._site.master.ask(message)
        if reply.code >= 400:
            return _refusal(reply, name, kind.plural)
        return status_answer(success(reply.code, name=name, kind=kind.plural))

    async def apply(self, request: web.Request) -> web.Response:
        file = request.query.get("file", "-")
        if len(file) > MAX_FILE_NAME_CHARS:
            raise bad_request(f"file: longer than {MAX_FILE_NAME_CHARS} characters")
        verb, namespace = request.query.get("verb", "apply"), request.query.get("namespace", "")
        if verb not in get_args(ApplyVerb):
            raise bad_request(f"verb: must be one of {', '.join(get_args(ApplyVerb))}")
        dry_run, show = is_dry_run(request.query), flag(request.query, "show")
        body = await read_body(request)

        def message(request_id: int) -> ApplyManifests:
            return ApplyManifests(
                request_id=request_id,
                file=file,
                body=body,
                verb=cast(ApplyVerb, verb),
                namespace=namespace,
                dry_run=dry_run,
                show=show,
            )

        return _answer(await self._site.master.ask(message))

    async def patch(self, request: web.Request) -> web.Response:
        """A change of one applied object, of whatever kind, by the command line."""
        query = request.query
        kind = query.get("kind", "")
        if kind not in _KINDS:
            raise bad_request(f"kind: must be one of {', '.join(_KINDS)}")
        patch_type = query.get("type", "")
        if patch_type not in _PATCH_TYPES.values():
            raise bad_request(f"type: must be one of {', '.join(_PATCH_TYPES.values())}")
        return _answer(await self._patch(request, kind, query.get("namespace", ""), query.get("name", ""), patch_type))

    async def patch_pod(self, request: web.Request) -> web.Response:
        """Kubernetes' PATCH: the answer is the pod as it became."""
        patch_type = _PATCH_TYPES.get(media_type(request.headers))
        if patch_type is None:
            raise ApiError(415, f"the media type of the body is none of {_TAKEN}")
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        reply = await self._patch(request, "Pod", namespace, name, patch_type)
        if reply.code >= 400:
            return _refusal(reply, name, "pods")
        (pod,) = msgspec.json.decode(reply.objects, type=list[msgspec.Raw])
        answer = json_answer(bytes(pod))
        for warning in reply.warnings:
            answer.headers.add("Warning", f'299 - "{_quoted(warning)}"')
        return answer

    async def _patch(self, request: web.Request, kind: str, namespace: str, name: str, patch_type: str) -> Reply:
        dry_run, values = is_dry_run(request.query), flag(request.query, "values")
        body = await read_body(request)

        def message(request_id: int) -> PatchObject:
            return PatchObject(
                request_id=request_id,
                kind=kind,
                namespace=namespace,
                name=name,
                patch_type=patch_type,
                body=body,
                dry_run=dry_run,
                values=values,
            )

        return await self._site.master.ask(message)

    async def restart_pod(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        grace_period_s = integer(request.query, "gracePeriodSeconds", high=MAX_GRACE_PERIOD_S)

        def message(request_id: int) -> RestartPod:
            return RestartPod(request_id=request_id, namespace=namespace, name=name, grace_period_s=grace_period_s)

        reply = await self._site.master.ask(message)
        return _refusal(reply, name, "pods") if reply.code >= 400 else _answer(reply)

    async def restart_container(self, request: web.Request) -> web.Response:
        place, container = request.match_info, request.match_info["container"]
        grace_period_s = integer(request.query, "gracePeriodSeconds", high=MAX_GRACE_PERIOD_S)

        def message(request_id: int) -> RestartContainer:
            return RestartContainer(
                request_id=request_id,
                namespace=place["namespace"],
                name=place["name"],
                container=container,
                grace_period_s=grace_period_s,
            )

        reply = await self._site.master.ask(message)
        return _refusal(reply, place["name"], "pods") if reply.code >= 400 else _answer(reply)

    async def pause_pod(self, request: web.Request) -> web.Response:
        return await self._freeze(request, Freeze.PAUSE)

    async def resume_pod(self, request: web.Request) -> web.Response:
        return await self._freeze(request, Freeze.RESUME)

    async def _freeze(self, request: web.Request, freeze: Freeze) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]

        def message(request_id: int) -> FreezePod:
            return FreezePod(request_id=request_id, namespace=namespace, name=name, freeze=freeze)

        reply = await self._site.master.ask(message)
        return _refusal(reply, name, "pods") if reply.code >= 400 else _answer(reply)

    async def restart_worker(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        reply = await self._site.master.ask(lambda request_id: RestartWorker(request_id=request_id, name=name))
        if reply.code >= 400:
            return _refusal(reply, name, "workers")
        return _answer(reply)

    async def drain(self, request: web.Request) -> web.Response:
        return _answer(await self._site.master.ask(lambda request_id: DrainNode(request_id=request_id)))

    async def uncordon(self, request: web.Request) -> web.Response:
        return _answer(await self._site.master.ask(lambda request_id: UncordonNode(request_id=request_id)))

    async def reload(self, request: web.Request) -> web.Response:
        accepts = flag(request.query, "acceptManifests")
        return _answer(
            await self._site.master.ask(
                lambda request_id: ReloadSettings(request_id=request_id, accept_manifests=accepts)
            )
        )

    async def look_for_garbage(self, _request: web.Request) -> web.Response:
        """Answer with what a collection would remove, and every image."""
        return await self._garbage(dry_run=True)

    async def collect_garbage(self, _request: web.Request) -> web.Response:
        return await self._garbage(dry_run=False)

    async def _garbage(self, *, dry_run: bool) -> web.Response:
        reply = await self._site.master.ask(
            lambda request_id: CollectGarbage(request_id=request_id, dry_run=dry_run), timeout_s=COLLECTION_TIMEOUT_S
        )
        if reply.code >= 400:
            return status_answer(failure(reply.code, reply.message, reason=reply.reason))
        return web.Response(body=reply.message.encode(), content_type="application/json")

    async def stop(self, request: web.Request) -> web.Response:
        pods = flag(request.query, "pods")
        return _answer(await self._site.master.ask(lambda request_id: StopAgent(request_id=request_id, pods=pods)))


def is_dry_run(query: Mapping[str, str]) -> bool:
    """``dryRun=All``. Raises ApiError 400 for another value."""
    stated = query.get("dryRun", "")
    if stated not in ("", "All"):
        raise bad_request("dryRun: must be All")
    return bool(stated)


def _quoted(text: str) -> str:
    """Text of a warning's header: printable ASCII, with backslashes before what ends it (RFC 7234, 5.5)."""
    plain = "".join(character if " " <= character <= "~" else "?" for character in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def _refusal(reply: Reply, name: str, kind: str) -> web.Response:
    details = StatusDetails(name=name, kind=kind)
    return status_answer(failure(reply.code, reply.message, reason=reply.reason, details=details))


def _answer(reply: Reply) -> web.Response:
    return json_answer(action_result(reply), reply.code)
