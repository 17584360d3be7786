"""Rules about what a node may say to an API server, whatever fails. They know nothing of how the product decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ipc.link.messages.api_server import PodChanged
from ipc.link.messages.pod_worker import SyncPod
from tests.sim.runtime import SimPodman
from tests.sim.trace import Trace
from tests.sim.watch import TERMINAL
from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.pod_updates import MIRROR, status_problems
from tests.support.servers.kube_api.requests import Request
from tests.support.servers.kube_api.store import Change
from workers.cluster.pods.status_manager import RECONCILE_S
from workers.cluster.pods.wanted_status import OWNED_CONDITIONS, plain_status

TOLD: Final = (
    "phase",
    "reason",
    "message",
    "podIP",
    "observedGeneration",
    "initContainerStatuses",
    "containerStatuses",
    "ephemeralContainerStatuses",
)
"""Fields of a status that are the node's alone."""


class ServerRules:
    """Told of every request, of every change of a pod on the server, and of every sync here."""

    def __init__(self, trace: Trace, podman: SimPodman) -> None:
        self._trace = trace
        self._podman = podman
        self._patching: set[str] = set()
        """UIDs of pods whose status the client waits to be patched."""
        self.unwanted: set[str] = set()
        """UIDs of pods that the server had, and that it at some time wanted to end, or had no longer."""
        self.known: set[str] = set()
        """UIDs of pods that were bound to the node."""
        self.mirrors: set[str] = set()
        self.registrations = 0
        """Requests to make the Node that were answered: it is there then."""
        self.true_status: Callable[[str], PodChanged | None] | None = None
        """Set while the server answers everything, so that nothing has to be said again but to put it right."""
        self.has_twin = False
        """Whether another host of this name is there: of a pod that both end, each may say how before it has heard of
        the other's end."""
        self._said: dict[str, tuple[float, bytes, PodChanged | None]] = {}
        """When a status was last sent, in which words, and what was true."""

    def of_twin(self, podman: SimPodman) -> ServerRules:
        """Rules of another host of this name: what the server wants is one."""
        twin = ServerRules(self._trace, podman)
        twin.unwanted, twin.known, twin.mirrors = self.unwanted, self.known, self.mirrors
        return twin

    # --- requests ---

    def sent(self, request: Request) -> None:
        """At most one patch of a pod's status is under way, and whoever says something else, none is repeated before
        its time."""
        if request.verb != "PATCH" or not request.path.startswith("/api/v1/namespaces/default/pods/"):
            return
        uid = request.json["metadata"]["uid"]
        if uid in self._patching:
            self._trace.broke(f"a second PATCH of {uid[:8]} while one is under way")
        self._patching.add(uid)
        if self.true_status is None:
            return
        true = self.true_status(uid)
        said_at, *said = self._said.get(uid, (-math.inf, b"", None))
        if said == [request.body, true] and request.at - said_at < RECONCILE_S:
            self._trace.broke(f"the same is said of {uid[:8]} after {request.at - said_at:.1f} s")
        self._said[uid] = request.at, request.body, true

    def over(self, request: Request) -> None:
        """The client waits for it no more."""
        if request.verb == "PATCH" and "/pods/" in request.path:
            self._patching.discard(request.json["metadata"].get("uid", ""))

    def arrives(self, request: Request, store: Any) -> None:
        """A final DELETE names the pod's UID, and comes when nothing of it runs."""
        if request.verb != "DELETE":
            return
        uid = (request.json.get("preconditions") or {}).get("uid", "")
        if not uid or request.json.get("gracePeriodSeconds") != 0:
            self._trace.broke(f"DELETE {request.path} without grace period 0 and a UID: {request.json}")
        running = [c.name for c in self._podman.of_pod(uid) if c.state == "running"]
        if running:
            self._trace.broke(f"DELETE of {uid[:8]} while {running} run")
        if uid in self.known and uid not in self.unwanted:
            self._trace.broke(f"DELETE of {uid[:8]}, which nobody has deleted")

    def answered(self, request: Request, code: int) -> None:
        if request.verb == "POST" and request.path == "/api/v1/nodes":
            self.registrations += 1
        if "/pods/" in request.path or code >= 400:
            self._trace.note(f"api: {request.verb} {request.path} {code}")

    # --- the store ---

    def changed(self, change: Change) -> None:
        """Terminal phases are not left."""
        pod, before = change.object, change.before
        uid = pod["metadata"]["uid"]
        if MIRROR in (pod["metadata"].get("annotations") or {}):
            self.mirrors.add(uid)
            return
        self.known.add(uid)
        if change.type == "DELETED" or pod["metadata"].get("deletionTimestamp"):
            self.unwanted.add(uid)
        old, new = _phase(before), _phase(pod)
        if self.has_twin:
            return
        if old in TERMINAL and new != old and before is not None and before["metadata"]["uid"] == uid:
            self._trace.broke(f"the server is told that {uid[:8]} is {new}, which was {old}")

    def restored(self, pods: Iterable[JsonObject]) -> None:
        """A backup has taken the place of the store: other pods are lost."""
        there = {pod["metadata"]["uid"] for pod in pods}
        self.unwanted |= self.known - there

    # --- syncs ---

    def sync(self, sync: SyncPod) -> None:
        """Mirrors are nothing that runs, and no pod is removed that the server wants."""
        if sync.uid in self.mirrors:
            self._trace.broke(f"mirror {sync.uid[:8]} is synced")
        if sync.remove and sync.uid in self.known - self.unwanted:
            self._trace.broke(f"{sync.uid[:8]} is removed, and the server wants it")


def differences(pod: JsonObject, told: PodChanged | None, *, is_static: bool) -> Iterator[str]:
    """Where the server's status is not that of the node, though the server would take it.

    It refuses that a container which has ended for good is told as one that waits or runs again, as it does in a new
    sandbox; a kubelet tells neither (pkg/kubelet/status/status_manager.go, checkContainerStateTransition)."""
    server = pod.get("status") or {}
    if told is None:
        yield "nothing is told of it"
        return
    own = plain_status(told.status, is_static=is_static)
    if any(status_problems(pod, {**pod, "status": own})):
        return
    for name in TOLD:
        if (server.get(name) or None) != (own.get(name) or None):
            yield f"{name} is {server.get(name)} there and {own.get(name)} here"
    there = {each["type"]: each.get("status") for each in server.get("conditions") or ()}
    for condition in own.get("conditions") or ():
        kind = condition["type"]
        if kind in OWNED_CONDITIONS and there.get(kind) != condition["status"]:
            yield f"{kind} is {there.get(kind)} there and {condition['status']} here"


def _phase(pod: JsonObject | None) -> str:
    return str((pod or {}).get("status", {}).get("phase", ""))
