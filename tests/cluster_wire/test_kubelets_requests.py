"""The fake API server answers a real kubelet's requests as the real server did: same codes, and the same objects
afterwards. The recordings are played against it in their order; what others have done is put into its store."""

from __future__ import annotations

import copy
import json
import re
from typing import Any, Final

import aiohttp

from tests.cluster_wire.recordings import Recorded, scenes
from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.resources import type_of
from tests.support.servers.kube_api.server import KubeApiServer
from tests.support.servers.kube_api.store import key_of

SCENES: Final = ("node-", "pod-", "job-", "static-pod-", "idle", "token-refresh")
NODE: Final = User("system:node:node1", ("system:nodes", "system:authenticated"))


def _stated(server: KubeApiServer, object_: JsonObject) -> None:
    """The object as the real server had it, whoever has written it."""
    made = copy.deepcopy(object_)
    plural, namespace, name = key_of(type_of(made), made)
    if namespace and not server.store.has("namespaces", "", namespace):
        server.store.create({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": namespace}})
    if server.store.has(plural, namespace, name):
        server.store.delete(plural, namespace, name)
    made["metadata"].pop("resourceVersion", None)
    server.store.create(made)


class Player:
    """Plays the recordings, one after the other."""

    def __init__(self, server: KubeApiServer, http: aiohttp.ClientSession) -> None:
        self._server = server
        self._http = http
        self.asked = 0
        self.differences: list[str] = []

    async def play(self, found: Recorded) -> None:
        if found.is_event:
            self._event(found.answer)
        elif _is_cut(found):
            self._cut(found)
        elif not found.is_watch and "protobuf" not in found.headers.get("accept", ""):
            await self._request(found)

    def _cut(self, found: Recorded) -> None:
        """A request that cannot be repeated: what came of it is stated."""
        if found.code == 201 and isinstance(found.answer, dict) and self._is_known(found.answer):
            _stated(self._server, found.answer)

    def _event(self, event: JsonObject) -> None:
        if event["type"] in ("ADDED", "MODIFIED") and self._is_known(event["object"]):
            _stated(self._server, event["object"])
        elif event["type"] == "DELETED" and self._is_known(event["object"]):
            key = key_of(type_of(event["object"]), event["object"])
            if self._server.store.has(*key):
                self._server.store.delete(*key)

    def _is_known(self, found: JsonObject) -> bool:
        try:
            type_of(found)
        except KeyError:
            return False
        return True

    async def _request(self, found: Recorded) -> None:
        self._prepare(found)
        self.asked += 1
        headers = {name: value for name, value in found.headers.items() if name in ("content-type", "accept")}
        body = json.dumps(self._renewed(found)) if found.body is not None else None
        async with self._http.request(
            found.verb, self._server.url + found.path, params=dict(found.query), data=body, headers=headers
        ) as response:
            answer = await response.json()
        where = f"{found.scene} {found.step} {found.verb} {found.path}"
        is_object = isinstance(found.answer, dict) and self._is_known(found.answer) and not _is_trimmed(found)
        if response.status != found.code and not _is_late(found, response.status):
            self.differences.append(f"{where}: {response.status} instead of {found.code}: {answer.get('message')}")
        elif (
            is_object
            and found.verb != "GET"
            and (wrong := _difference(_without_others(found, answer), _without_others(found, found.answer)))
        ):
            self.differences.append(f"{where}: {wrong}")
        if is_object and found.verb != "DELETE" and "name" in found.answer["metadata"]:
            _stated(self._server, found.answer)  # the next one begins from what the real server had

    def _renewed(self, found: Recorded) -> Any:
        """The body, with the revision that its object has here; conflicts are tested elsewhere."""
        if found.verb != "PUT":
            return found.body
        body = copy.deepcopy(found.body)
        current = self._server.store.get(*key_of(type_of(body), body))
        body["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
        return body

    def _bound(self, found: Recorded) -> None:
        """A token's pod that no watch of the recordings has shown."""
        pod = (found.body.get("spec") or {}).get("boundObjectRef")
        namespace = found.path.split("/")[4]
        if pod and not self._server.store.has("pods", namespace, pod["name"]):
            metadata = {"name": pod["name"], "namespace": namespace, "uid": pod["uid"]}
            spec = {"nodeName": "node1", "serviceAccountName": found.path.split("/")[6], "containers": []}
            self._server.store.create({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec})

    def _prepare(self, found: Recorded) -> None:
        """Objects that others have created, changed or deleted, and nobody watched."""
        answer, store = found.answer, self._server.store
        if found.path.endswith("/token"):
            self._bound(found)
        if found.code == 404 and (named := _OBJECT.search(found.path)):
            key = named["plural"], named["namespace"] or "", named["name"]
            if store.has(*key):
                store.delete(*key)
        if not isinstance(answer, dict) or "name" not in answer.get("metadata", {}) or not self._is_known(answer):
            return
        is_there = store.has(*(key := key_of(type_of(answer), answer)))
        if found.code == 201 and is_there:
            store.delete(*key)
        elif found.code == 200 and not is_there:
            _stated(self._server, answer)


_OBJECT: Final = re.compile(r"/(namespaces/(?P<namespace>[^/]+)/)?(?P<plural>[a-z]+)/(?P<name>[^/]+)(/status)?$")
_OF_OTHERS: Final = frozenset(
    {".spec.taints", ".spec.podCIDR", ".spec.podCIDRs", ".spec.unschedulable", ".metadata.annotations"}
)
"""Fields of nodes that controllers and users have written, whom nobody watched."""
_VOLATILE: Final = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields", "name"}
)


def _difference(got: Any, expected: Any, path: str = "") -> str:
    """The first path at which two answers differ; dates, ids and revisions are nobody's."""
    if isinstance(got, dict) and isinstance(expected, dict):
        for name in sorted(got.keys() | expected.keys()):
            if (path == ".metadata" and name in _VOLATILE) or f"{path}.{name}" in _OF_OTHERS:
                continue
            if found := _difference(got.get(name), expected.get(name), f"{path}.{name}"):
                return found
        return ""
    if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected):
        return next(
            (found for pair in zip(got, expected, strict=True) if (found := _difference(*pair, f"{path}[]"))), ""
        )
    return "" if (got or None) == (expected or None) else f"{path}: {got!r} instead of {expected!r}"[:300]


def _is_trimmed(found: Recorded) -> bool:
    text = json.dumps(found.answer)
    return not isinstance(found.answer, dict) or "trimmed" in text or found.path.endswith("/token")


def _without_others(found: Recorded, answer: JsonObject) -> JsonObject:
    """The answer without what others have written into the object before: a pod's resize counts as a generation."""
    if found.verb != "PATCH":
        return answer
    return answer | {"metadata": {name: value for name, value in answer["metadata"].items() if name != "generation"}}


def _is_late(found: Recorded, code: int) -> bool:
    """The node authorizer hears of a deleted pod later than the registry: 404 for a moment, 403 afterwards."""
    return (found.code, code) == (404, 403) and "/pods/" in found.path


def _is_cut(found: Recorded) -> bool:
    return "trimmed" in json.dumps(found.body)


async def test_answers() -> None:
    async with KubeApiServer(tls=False, plain_user=NODE) as server, aiohttp.ClientSession() as http:
        player = Player(server, http)
        for found in sorted(scenes(""), key=lambda one: one.time_s):
            if found.client == "kubelet" and found.scene.startswith(SCENES):
                await player.play(found)
    assert player.asked > 500
    assert not player.differences, "\n".join(player.differences)
