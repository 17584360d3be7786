"""A cluster for the end-to-end tests: the fake API server on a loop of its own, and an agent that is its node."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.e2e.agent import Agent
from tests.e2e.manifests import Json
from tests.support.servers.kube_api.api import ADMIN
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.resources import BY_PLURAL
from tests.support.servers.kube_api.server import LOOPBACK, KubeApiServer

T = TypeVar("T")

NODE: Final = "e2e"
CALL_DEADLINE_S: Final = 30.0
BOOTSTRAP_TOKEN: Final = "abcdef.0123456789abcdef"


ACCESS: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMESPACE_FILE: Final = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}


def access_volume(expiration_s: int = 3607) -> Json:
    """The volume that a cluster puts into every pod."""
    sources: list[Json] = [
        {"serviceAccountToken": {"expirationSeconds": expiration_s, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [NAMESPACE_FILE]}},
    ]
    return {"name": "kube-api-access-x2x4z", "projected": {"defaultMode": 0o644, "sources": sources}}


def access_mount() -> Json:
    """Mount of that volume in a container."""
    return {"name": "kube-api-access-x2x4z", "mountPath": ACCESS, "readOnly": True}


def _with_access(spec: Json) -> Json:
    mounted = [{**each, "volumeMounts": [*each.get("volumeMounts", ()), access_mount()]} for each in spec["containers"]]
    return {**spec, "containers": mounted, "volumes": [*spec.get("volumes", ()), access_volume()]}


class Cluster:
    """The server, asked from the test's own thread."""

    def __init__(self, server: KubeApiServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop

    def do(self, act: Callable[[KubeApiServer], T]) -> T:
        """Something done on the server's loop, and its result."""

        async def done() -> T:
            return act(self._server)

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(CALL_DEADLINE_S)

    def create(self, *objects: Json) -> None:
        """Objects that are simply there."""
        self.do(lambda server: [server.store.create(found) for found in objects])

    def time(self) -> float:
        """Seconds of the clock by which requests are dated."""
        return self.do(lambda _: self._loop.time())

    def stop(self) -> None:
        """As if the server were killed."""
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(CALL_DEADLINE_S)

    def start(self) -> None:
        """Have it back, at the same address."""
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(CALL_DEADLINE_S)

    def schedule(self, manifest: Json, *, automount: bool = False) -> Json:
        """A user's pod, bound to the node. ``automount``: with the token that a cluster gives every pod (its admission
        plugin ServiceAccount), for which there has to be a ConfigMap kube-root-ca.crt."""
        spec = (
            _with_access(manifest["spec"]) if automount else {"automountServiceAccountToken": False, **manifest["spec"]}
        )
        return self.do(lambda server: server.schedule({**manifest, "spec": spec}, NODE))

    def first_told(self) -> dict[str, float]:
        """When the server has told the node of each object first, by UID, seconds."""
        return self.do(lambda server: dict(server.first_told))

    def delete(self, name: str, grace_s: int | None = None) -> None:
        self.do(lambda server: server.delete_pod(name, grace_s=grace_s))

    def resize(self, name: str, **resources: Json) -> Json:
        """Other resources for containers, by the subresource; the pod as it is then."""

        def resize(server: KubeApiServer) -> Json:
            found = server.store.get("pods", "default", name)
            for container in found["spec"]["containers"]:
                container["resources"] = resources.get(container["name"], container["resources"])
            return server.writes.update(BY_PLURAL["pods"], "default", name, "resize", found, ADMIN)[1]

        return self.do(resize)

    def debug(self, name: str, *containers: Json) -> Json:
        """Ephemeral containers beside those that a pod has, by the subresource; the pod as it is then."""

        def debug(server: KubeApiServer) -> Json:
            found = server.store.get("pods", "default", name)
            found["spec"]["ephemeralContainers"] = [*found["spec"].get("ephemeralContainers", ()), *containers]
            return server.writes.update(BY_PLURAL["pods"], "default", name, "ephemeralcontainers", found, ADMIN)[1]

        return self.do(debug)

    def evict(self, name: str, grace_s: int | None = None) -> None:
        """Evict a pod, as `kubectl drain` does."""
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        body = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name}, "deleteOptions": options}
        self.do(lambda server: server.writes.below_pod("default", name, "eviction", body, ADMIN))

    def label_node(self, **labels: str) -> None:
        """Give the Node labels, as its cluster's people do."""

        def give(server: KubeApiServer) -> None:
            found = server.store.get("nodes", "", NODE)
            found["metadata"]["labels"] |= labels
            server.store.update(found)

        self.do(give)

    def pods(self) -> dict[str, Json]:
        """Every pod by name."""
        return {pod["metadata"]["name"]: pod for pod in self.do(lambda server: server.store.all("pods"))}

    def copies(self, name: str) -> list[Json]:
        """Every copy of a pod that the server ever had, also of one that is gone."""
        key = ("pods", "default", name)
        return self.do(lambda server: [each.object for each in server.store.since(0) if each.key == key])

    def status(self, name: str) -> Json:
        """The status of a pod; empty when there is none."""
        found: Json = self.pods().get(name, {}).get("status", {})
        return found

    def condition(self, name: str, type_: str) -> str:
        """Status of a pod's condition; empty when it has none."""
        conditions = self.status(name).get("conditions", ())
        return next((str(each["status"]) for each in conditions if each["type"] == type_), "")

    def set_condition(self, name: str, type_: str, status: str) -> None:
        """Write a condition of a pod, as a controller of the cluster does."""

        def write(server: KubeApiServer) -> None:
            found = server.store.get("pods", "default", name)
            others = [each for each in found["status"].get("conditions", ()) if each["type"] != type_]
            found["status"]["conditions"] = [*others, {"type": type_, "status": status, "lastProbeTime": None}]
            server.store.update(found)

        self.do(write)

    def ready(self) -> set[str]:
        """Names of all pods that are ready."""
        return {name for name, pod in self.pods().items() if _is_ready(pod)}

    def is_ready(self, name: str) -> bool:
        return self.condition(name, "Ready") == "True"

    def requests(self, test: Callable[[Request], bool]) -> list[Request]:
        """Requests that the server has had so far."""
        return self.do(lambda server: [request for request in server.requests if test(request)])

    def lease_version(self) -> int:
        """resourceVersion of the node's lease."""
        lease = self.do(lambda server: server.store.get("leases", "kube-node-lease", NODE))
        return int(lease["metadata"]["resourceVersion"])

    def events(self, name: str) -> set[str]:
        """Reasons of the events about an object."""
        found = self.do(lambda server: server.store.all("events"))
        return {event["reason"] for event in found if event["involvedObject"]["name"] == name}

    def patches(self, name: str) -> list[Request]:
        """Patches of a pod's status, in the default namespace."""
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        return self.requests(lambda request: request.verb == "PATCH" and request.path == path)

    def join(self, agent: Agent, directory: Path, **settings: Any) -> None:
        """Make an agent that was not started yet the node, with these settings of the cluster."""
        path = self.do(lambda server: server.kubeconfig(directory, f"system:node:{NODE}"))
        own = {"kubeconfig": str(path), "nodeLeaseDurationSeconds": 4}
        agent.configure({"nodeName": NODE, "cluster": own | settings})

    def bootstrap(self, agent: Agent, directory: Path) -> None:
        """Have an agent that was not started yet ask for a certificate and register itself."""
        path = self.do(lambda server: _bootstrap_file(server, directory))
        settings = {"bootstrapKubeconfig": str(path), "nodeLeaseDurationSeconds": 4}
        agent.configure({"nodeName": NODE, "cluster": settings})


def _is_ready(pod: Json) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


async def _end(server: KubeApiServer) -> None:
    """The server, and whatever of its handlers waits for somebody who is gone."""
    await server.__aexit__()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _bootstrap_file(server: KubeApiServer, directory: Path) -> Path:
    server.tokens.add_bootstrap(BOOTSTRAP_TOKEN)
    return server.kubeconfig(directory, f"system:bootstrap:{BOOTSTRAP_TOKEN.partition('.')[0]}", BOOTSTRAP_TOKEN)


@contextlib.contextmanager
def running_cluster(address: str = LOOPBACK, *names: str) -> Iterator[Cluster]:
    """A server until the block ends, at that address of the host; others reach it at further ones."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="API server", daemon=True)
    thread.start()
    server = KubeApiServer(address=address, names=names)
    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(CALL_DEADLINE_S)
        yield Cluster(server, loop)
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(CALL_DEADLINE_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CALL_DEADLINE_S)
        loop.close()
