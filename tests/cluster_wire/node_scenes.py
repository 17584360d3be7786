"""Scenes of the recordings that are about the Node itself, and which scene is lived how. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tests.cluster_wire.recordings import Recorded
from tests.cluster_wire.stories import Story, name_of
from tests.support.servers.kube_api.failures import JsonObject

BOOTSTRAP: Final = "node-bootstrap, node-lease"
LONG: Final = "node-watches, node-status-heartbeat"
REVIEWS: Final = "kubelet-authn-authz"
RESTART: Final = "node-restart"
PRESSURE: Final = "node-pressure, node-pressure-over"
DELETED: Final = "node-deleted"
REGISTERED: Final = "node-deleted-kubelet-restarted"
NODE_SCENES: Final = (BOOTSTRAP, LONG, REVIEWS, RESTART, PRESSURE, DELETED, REGISTERED)
"""In the order in which they are lived."""
NOTHING_ASKED: Final = ("node-watch-bookmarks",)
"""Scenes in which the server alone has said something."""
NOT_LIVED: Final = {
    "node-protobuf": "the same as others, in protobuf: this node speaks JSON, which a server takes as well"
}
"""Scenes of a kubelet that are not played, and why."""
ASKED_OF_KUBELET: Final = "kubelet-http-10250"
"""Requests to the kubelet's port, which the reviews were about."""
UNDER_PRESSURE: Final = ("web", "badimg")
"""Pods that were there before the node ran short, and were evicted."""
_NODE: Final = "node1"


def of_node_scene(scene: str, found: Iterable[Recorded]) -> list[Recorded]:
    """Records of these scenes that are about the Node: the kubelet's requests, and the server's copies."""
    names = scene.split(", ")
    return [one for one in found if one.scene in names and name_of(one.verb, one.path, one.body) in ("", _NODE)]


def under_pressure(found: Sequence[Recorded]) -> list[Story]:
    """The end of each pod that was evicted, from the copies that the scene has of it."""
    scene = [one for one in found if one.scene == PRESSURE.partition(",")[0]]
    made = []
    for name in UNDER_PRESSURE:
        asked = [one for one in scene if name_of(one.verb, one.path, one.body) == name]
        copies = [_without_debuggers(one.answer) for one in asked if _is_whole_pod(one.answer)]
        made.append(Story(name, [f"{PRESSURE}: {name}"], requests=asked, copies=copies))
    return made


def _without_debuggers(pod: JsonObject) -> JsonObject:
    """The pod without the containers that other scenes have left in it."""
    return pod | {"status": {name: of for name, of in pod["status"].items() if name != "ephemeralContainerStatuses"}}


def _is_whole_pod(answer: JsonObject | None) -> bool:
    return isinstance(answer, dict) and answer.get("kind") == "Pod" and "nodeName" in answer.get("spec", {})
