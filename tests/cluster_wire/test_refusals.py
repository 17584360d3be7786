"""The fake API server refuses what the real one refuses, in its words (scenes *errors/*)."""

from __future__ import annotations

import json
from typing import Any, Final

import aiohttp

from tests.cluster_wire.recordings import Recorded, scenes
from tests.support.servers.kube_api.requests import User
from tests.support.servers.kube_api.server import KubeApiServer

NOT_SERVED: Final = {
    "404-group": "a text page for a group that no server has",
    "404-log": "logs come from kubelets",
    "400-log": "logs come from kubelets",
    "422-log-bad": "logs come from kubelets",
    "400-exec": "streams go to kubelets",
    "400-portforward": "streams go to kubelets",
    "405-delete-log": "logs come from kubelets",
    "405-post-watch": "paths of old watches",
    "405-delete-ns-collection": "namespaces are not emptied here",
    "406-table": "no tables",
    "400-strict": "fields are not validated",
    "422-create-causes": "names and ports of pods are not validated",
    "422-bad-dryrun": "nothing is tried without being done",
    "403-admission-sa": "service accounts need not be there",
    "403-priorityclass": "priority classes need not be there",
    "403-ns-protected": "namespaces may go",
    "404-delete-yaml-body": "no YAML",
    "422-cm-too-big": "the recording has no body of that size",
    "413": "the recording has no body of that size",
    "409-precondition": "needs uids of its own: test_preconditions",
    "410-continue": "needs a list of its own: test_lists",
    "422-immutable": "ends with a comparison of Go structures",
    "400-bad-json": "ends with a message of Go's parser",
    "400-empty-body": "ends with a message of Go's parser",
    "400-bad-continue": "ends with a message of Go's parser",
    "400-wrong-kind": "ends with the names of Go types",
    "504-rv": "has revisions in its words: test_lists",
}
"""Scenes that the fake does not play, by their beginning."""


def _world(server: KubeApiServer) -> None:
    server.tokens.add(User("bob", ("system:authenticated",)), "bob")
    server.store.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "ecm"}, "data": {"a": "b"}})
    server.schedule({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}, "node1")


async def test_refusals() -> None:
    seen = 0
    async with KubeApiServer(tls=False) as server, aiohttp.ClientSession() as http:
        _world(server)
        for found in scenes("errors/4"):
            name = found.scene.removeprefix("errors/")
            if name.startswith(tuple(NOT_SERVED)):
                continue
            seen += 1
            _prepare(server, name)
            code, answer = await _asked(http, server, found)
            assert (name, code, _comparable(answer)) == (name, found.code, _comparable(found.answer))
    assert seen >= 25


def _prepare(server: KubeApiServer, name: str) -> None:
    if name == "429-eviction-pdb":
        server.writes.exhausted_budget = "pdb"
        pod = server.store.get("pods", "default", "web")
        pod["status"]["phase"] = "Running"
        server.store.update(pod)
    if name == "delete-cm-again":
        server.store.delete("configmaps", "default", "ecm")


async def _asked(http: aiohttp.ClientSession, server: KubeApiServer, found: Recorded) -> tuple[int, Any]:
    headers = {name: value for name, value in found.headers.items() if name in ("content-type", "accept")}
    if "impersonate-user" in found.headers:
        headers["authorization"] = "Bearer bob"
    if "authorization" in found.headers:
        headers["authorization"] = "Bearer nobody"
    body = found.body if isinstance(found.body, str | None) else json.dumps(found.body)
    async with http.request(
        found.verb, server.url + found.path, params=dict(found.query), data=body, headers=headers
    ) as response:
        return response.status, await response.json()


def _comparable(answer: Any) -> Any:
    return {name: answer.get(name) for name in ("kind", "apiVersion", "status", "message", "reason", "details", "code")}
