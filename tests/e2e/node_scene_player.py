"""The recorded scenes of the Node itself, played one after the other: the agent begins anew, the Node is deleted, its
memory is short, and somebody comes to its port."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlencode

from tests.cluster_wire import node_scenes
from tests.cluster_wire.recordings import Recorded
from tests.cluster_wire.scene_differences import Lived
from tests.cluster_wire.shapes import kind_of
from tests.cluster_wire.stories import name_of
from tests.e2e.agent import Agent
from tests.e2e.cluster import NODE, Cluster
from tests.e2e.manifests import Json, container, pod
from tests.support.podman_service import IMAGE
from tests.support.servers.kube_api.requests import Request, User
from tests.support.servers.kube_api.server import KubeApiServer

ADMIN: Final = "kube-apiserver-kubelet-client"
ACCOUNT: Final = "system:serviceaccount:default:norights"
NOBODY_HAS: Final = "localhost/nosuch:9"
"""An image."""
ASK_S: Final = 20.0
ALL_MEMORY: Final = "99%"
"""A threshold below which every host is."""
SENT_AGAIN_S: Final = 2.0
"""Events that are younger when an agent starts are sent once more (`EventSender.begin`): they are dated in seconds."""
MISSED: Final = 3
"""Times that the agent has missed its Node before it goes on."""


class Mark(NamedTuple):
    """A moment of the server's."""

    at: float
    revision: int


class NodeScenePlayer:
    """Plays them on a node that runs, and keeps what the server has seen of each."""

    def __init__(self, cluster: Cluster, node: Agent, directory: Path) -> None:
        self._cluster = cluster
        self._node = node
        self._directory = directory
        self._spans: dict[str, tuple[Mark, Mark]] = {}

    def mark(self) -> Mark:
        return Mark(self._cluster.time(), self._cluster.do(lambda server: server.store.revision))

    @contextlib.contextmanager
    def scene(self, title: str) -> Iterator[None]:
        """A block in which that scene happens."""
        begun = self.mark()
        yield
        self._spans[title] = begun, self.mark()

    def lived(self, title: str, name: str = NODE) -> Lived:
        """Copies and requests of the Node in a scene, or of a pod."""
        begun, ended = self._spans[title]
        wanted = (name,) if name != NODE else ("", NODE)

        def is_of_it(request: Request) -> bool:
            is_named = name_of(request.verb, request.path, request.json) in wanted
            return begun.at <= request.at < ended.at and is_named

        return Lived(NODE, self._copies(name, begun.revision, ended.revision), self._cluster.requests(is_of_it))

    def _copies(self, name: str, after: int, until: int) -> Sequence[Json]:
        def of_history(server: KubeApiServer) -> Sequence[Json]:
            key = ("nodes", "", NODE) if name == NODE else ("pods", "default", name)
            every = [each for each in server.store.since(0) if each.key == key]
            before = [each.object for each in every if each.revision <= after and each.type != "DELETED"][-1:]
            return before + [each.object for each in every if after < each.revision <= until and each.type != "DELETED"]

        return self._cluster.do(of_history)

    # --- the scenes, in their order ---

    def go_on(self) -> None:
        """For so long that watches end and statuses are sent without a change."""
        begun = self._cluster.time()
        with self.scene(node_scenes.LONG):
            self._cluster.do(lambda server: server.faults.drop_watches())
            self._until_all_asked(_WATCHES, begun)
            self._until_asked("PATCH", lambda request: request.path == f"/api/v1/nodes/{NODE}/status")

    def be_asked(self, port: int, asked: Sequence[Recorded]) -> None:
        """The recorded requests to the kubelet's port, by the same three."""
        self._cluster.do(lambda server: server.tokens.add(_WITHOUT_RIGHTS, "norights"))
        client = KubeletPort(port, self._directory, self._cluster.do(lambda server: server.authority.issue(_ADMIN)))
        with self.scene(node_scenes.REVIEWS):
            for one in asked:
                client.ask(one)

    def begin_anew(self) -> None:
        with self.scene(node_scenes.RESTART):
            self._restart()
            self._until_ready()

    def run_short(self) -> None:
        """Make memory short by a threshold that is changed as in the recording: with the agent's next start."""
        begun = self._cluster.time()
        web, badimg = node_scenes.UNDER_PRESSURE
        for name, image in ((web, IMAGE), (badimg, NOBODY_HAS)):
            self._cluster.schedule(pod(name, container("c", image=image)), automount=True)
        self._node.until(lambda: self._cluster.is_ready(web), "the pod is ready")
        self._node.until(lambda: _waits(self._cluster.status(badimg)), "the other one waits for its image")
        self._until_event(web, "Started", begun)
        self._until_event(badimg, "Failed", begun)
        told = self._cluster.time()
        self._node.until(lambda: self._cluster.time() > told + SENT_AGAIN_S, "the next agent sends none of these again")
        with self.scene(node_scenes.PRESSURE):
            self._node.configure({"evictionHard": {"memory.available": ALL_MEMORY}})
            self._restart()
            for name in (web, badimg):
                self._until_evicted(name)
            self._node.until(lambda: self._condition("MemoryPressure") == "True", "the Node says so")
            self._node.configure({"evictionHard": {}})
            self._restart()
            self._node.until(lambda: self._condition("MemoryPressure") == "False", "the Node has memory again")
            self._until_ready()
        for name in (web, badimg):
            self._cluster.delete(name)

    def lose_node(self) -> None:
        """Somebody deletes it; the agent makes it again when it begins anew."""
        path = f"/api/v1/nodes/{NODE}"
        with self.scene(node_scenes.DELETED):
            self._cluster.do(_delete_node)
            self._until_asked("GET", lambda request: request.path == path and request.code == 404, MISSED)
        with self.scene(node_scenes.REGISTERED):
            self._restart()
            self._until_ready()
            self._node.until(lambda: self._cluster.do(_has_csi_node), "there is a CSINode")

    def bootstrapped(self, begun: Mark) -> None:
        """End the scene of a node's first seconds, when it has registered and renewed its lease."""
        renewed = f"/leases/{NODE}"
        self._until_asked("PUT", lambda request: request.verb == "PUT" and request.path.endswith(renewed))
        self._until_ready()
        self._spans[node_scenes.BOOTSTRAP] = begun, self.mark()

    def _restart(self) -> None:
        """Restart the agent, and wait for the last of what every start asks."""
        begun = self._cluster.time()
        self._node.restart()
        self._until_all_asked(_OF_A_START, begun)

    def _until_all_asked(self, kinds: Sequence[str], since: float) -> None:
        def is_asked() -> bool:
            return set(kinds) <= {_kind(one) for one in self._cluster.requests(lambda request: request.at >= since)}

        self._node.until(is_asked, f"{', '.join(kinds)} were asked")

    def _until_asked(self, what: str, test: Callable[[Request], bool], times: int = 1) -> None:
        begun = self._cluster.time()

        def is_asked() -> bool:
            return len(self._cluster.requests(lambda request: request.at >= begun and test(request))) >= times

        self._node.until(is_asked, f"{what} was asked")

    def _until_event(self, name: str, reason: str, since: float) -> None:
        """Until it was sent: it goes its own way, behind the status."""

        def is_told(request: Request) -> bool:
            if request.at < since or request.verb != "POST" or not request.path.endswith("/events"):
                return False
            event = request.json
            return bool(event["involvedObject"]["name"] == name and event["reason"] == reason)

        self._node.until(lambda: bool(self._cluster.requests(is_told)), f"{name}: {reason} was told")

    def _until_evicted(self, name: str) -> None:
        self._node.until(lambda: self._cluster.status(name).get("phase") == "Failed", f"{name} is evicted")

    def _until_ready(self) -> None:
        self._node.until(lambda: self._condition("Ready") == "True", "the Node is ready")

    def _condition(self, type_: str) -> str:
        nodes: list[Json] = self._cluster.do(lambda server: server.store.all("nodes"))
        conditions = nodes[0].get("status", {}).get("conditions", ()) if nodes else ()
        return next((str(each["status"]) for each in conditions if each["type"] == type_), "")


_WATCHES: Final = (
    "WATCH /api/v1/nodes",
    "WATCH /api/v1/pods",
    "WATCH /api/v1/services",
    "WATCH /apis/node.k8s.io/v1/runtimeclasses",
)
_OF_A_START: Final = ("POST /api/v1/nodes", "GET /apis/storage.k8s.io/v1/csinodes/{name}", "WATCH /api/v1/pods")
_ADMIN: Final = User(ADMIN, ("system:masters",))
_CREDENTIAL: Final = {"authentication.kubernetes.io/credential-id": ("JTI=1",)}
_WITHOUT_RIGHTS: Final = User(ACCOUNT, ("system:authenticated",), "a-uid", _CREDENTIAL)


class KubeletPort:
    """Clients of the kubelet's port: one with a certificate, one with a token, one with a token that nobody knows."""

    def __init__(self, port: int, directory: Path, pem: bytes) -> None:
        self._port = port
        chain = directory / "client.pem"
        chain.write_bytes(pem)
        self._with_certificate, self._without = (ssl._create_unverified_context() for _ in range(2))
        self._with_certificate.load_cert_chain(chain)

    def ask(self, one: Recorded) -> None:
        """Send one of the recorded requests; the answer may be any."""
        has_certificate = "certificate" in one.client
        context = self._with_certificate if has_certificate else self._without
        headers: Mapping[str, str] = {}
        if "authorization" in one.headers:
            headers = {"Authorization": "Bearer " + ("bad" if one.code == 401 else "norights")}
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=ASK_S, context=context)
        with contextlib.closing(connection):
            connection.request(one.verb, f"{one.path}?{urlencode(one.query)}", headers=dict(headers))
            connection.getresponse()


def _kind(request: Request) -> str:
    return kind_of(request.verb, request.path, is_watch=request.is_watch)


def _has_csi_node(server: KubeApiServer) -> bool:
    return server.store.has("csinodes", "", NODE)


def _delete_node(server: KubeApiServer) -> None:
    """The Node, and by the garbage collector what it owns."""
    for key in (("nodes", "", NODE), ("csinodes", "", NODE), ("leases", "kube-node-lease", NODE)):
        server.store.delete(*key)


def _waits(status: Json) -> bool:
    states = [each["state"] for each in status.get("containerStatuses", ())]
    return any(state.get("waiting", {}).get("reason") == "ErrImageNeverPull" for state in states)
