"""Stories of single pods in the recordings: what people did to each, and what the kubelet asked for it, over as many
scenes as it has lived. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tests.cluster_wire.recordings import Recorded
from tests.support.servers.kube_api.failures import JsonObject

ActKind = Literal["create", "write", "remove", "resize", "debug", "evict", "delete", "release", "configure"]
MIRROR: Final = "kubernetes.io/config.mirror"
_EVICTED: Final = "EvictionByEvictionAPI"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_FILES: Final[Mapping[str, ActKind]] = {
    "static-pod-create": "write",
    "static-pod-edited": "write",
    "static-pod-removed": "remove",
}
_POD_PATH: Final = re.compile(r"/pods/(?P<name>[^/]+)(/status)?$")
_EVENT_PATH: Final = re.compile(r"/events/(?P<name>[^/]+)\.[0-9a-f]+$")


@dataclass
class Act:
    """One thing that somebody did to a pod."""

    kind: ActKind
    scene: str
    before: JsonObject
    """Status of the pod at that moment, as the server had it."""
    pod: JsonObject
    """The pod as the act has left it; of ``configure`` the ConfigMap that it mounts."""
    grace_s: int | None = None
    """Grace of a deletion, seconds."""


@dataclass
class Story:
    """One pod from its creation to its end."""

    name: str
    scenes: list[str] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    requests: list[Recorded] = field(default_factory=list)
    copies: list[JsonObject] = field(default_factory=list)
    """The server's copies, in the order in which they came to be."""

    @property
    def title(self) -> str:
        return ", ".join(self.scenes)

    @property
    def is_static(self) -> bool:
        return self.acts[0].kind == "write"

    @property
    def files(self) -> list[JsonObject]:
        """Contents of a static pod's file, one after the other: each mirror that differs from the one before."""
        made = [one.body for one in self.requests if one.verb == "POST" and one.body.get("kind") == "Pod"]
        return [pod for number, pod in enumerate(made) if not number or pod["spec"] != made[number - 1]["spec"]]


def stories(found: Iterable[Recorded]) -> list[Story]:
    """Every pod that comes to be in these records, in that order."""
    made: dict[str, Story] = {}
    for one in sorted(found, key=lambda each: each.time_s):
        pod = _pod_of(one)
        if pod is not None and (one.is_event or one.verb == "POST") and _is_new(made, one, pod):
            made[pod["metadata"]["name"]] = Story(pod["metadata"]["name"])
        story = made.get(name_of(one.verb, one.path, one.body) or (pod["metadata"]["name"] if pod else ""))
        if story is not None:
            _take(story, one, pod)
        elif (changed := _config_map(one)) is not None:
            _configure(made.values(), one.scene, changed)
    return list(made.values())


def name_of(verb: str, path: str, body: Any) -> str:
    """Name of the pod that a request is about; empty when it is about none."""
    if match := _POD_PATH.search(path) or _EVENT_PATH.search(path):
        return match["name"]
    if not isinstance(body, dict):
        return ""
    if body.get("kind") == "Event":
        return str(body["involvedObject"].get("name", ""))
    if body.get("kind") == "TokenRequest":
        return str((body["spec"].get("boundObjectRef") or {}).get("name", ""))
    return str(body["metadata"]["name"]) if verb == "POST" and body.get("kind") == "Pod" else ""


def is_mirror(pod: Mapping[str, Any]) -> bool:
    return MIRROR in (pod["metadata"].get("annotations") or {})


def _is_new(made: Mapping[str, Story], one: Recorded, pod: JsonObject) -> bool:
    is_born = one.verb == "POST" or (one.answer or {}).get("type") == "ADDED"
    return is_born and pod["metadata"]["name"] not in made and not (pod.get("status") or {}).get("containerStatuses")


def _pod_of(one: Recorded) -> JsonObject | None:
    """The server's copy that an event of a watch, or an answer, has."""
    answer = one.answer
    if not isinstance(answer, dict):
        return None
    if one.is_event:
        answer = answer.get("object") or {} if answer.get("type") != "BOOKMARK" else {}
    is_whole = answer.get("kind") == "Pod" and "name" in answer.get("metadata", {}) and "spec" in answer
    return answer if is_whole else None


def _config_map(one: Recorded) -> JsonObject | None:
    """The ConfigMap that somebody has changed."""
    is_change = one.is_event and (one.answer or {}).get("type") == "MODIFIED"
    found: JsonObject = one.answer["object"] if is_change else {}
    return found if found.get("kind") == "ConfigMap" else None


def _configure(made: Iterable[Story], scene: str, changed: JsonObject) -> None:
    for story in made:
        volumes = (story.acts[0].pod.get("spec") or {}).get("volumes", ()) if story.acts else ()
        if any((one.get("configMap") or {}).get("name") == changed["metadata"]["name"] for one in volumes):
            story.scenes.append(scene)
            story.acts.append(Act("configure", scene, story.copies[-1]["status"], changed))


def _take(story: Story, one: Recorded, pod: JsonObject | None) -> None:
    if one.scene not in story.scenes:
        story.scenes.append(one.scene)
        story.acts.extend(_of_file(story, one))
    if not one.is_event:
        story.requests.append(one)
    if pod is None:
        return
    if one.is_event:
        before = story.copies[-1] if story.copies else None
        for act in _acts(one, before, pod):
            if act.kind == "delete" and story.acts and story.acts[-1].kind == "evict":
                story.acts[-1].grace_s = act.grace_s
            else:
                story.acts.append(act)
    if one.is_event or one.verb != "GET":
        story.copies.append(pod)


def _of_file(story: Story, one: Recorded) -> Iterator[Act]:
    """Acts on a static pod's file, at the beginning of a scene."""
    if (kind := _FILES.get(one.scene)) is not None:
        status = story.copies[-1]["status"] if story.copies else {}
        yield Act(kind, one.scene, status, {})


def _acts(one: Recorded, before: JsonObject | None, after: JsonObject) -> Iterator[Act]:
    """Acts of others than the kubelet between two copies."""
    status = copy.deepcopy(before["status"]) if before else {}
    if before is None or before["metadata"]["uid"] != after["metadata"]["uid"]:
        if not is_mirror(after):
            yield Act("create", one.scene, status, after)
        return
    kinds: list[ActKind] = []
    if _containers(before, "resources") != _containers(after, "resources"):
        kinds.append("resize")
    if len(before["spec"].get("ephemeralContainers", ())) < len(after["spec"].get("ephemeralContainers", ())):
        kinds.append("debug")
    if before["metadata"].get("finalizers") and not after["metadata"].get("finalizers"):
        kinds.append("release")
    if _is_evicted(after) and not _is_evicted(before):
        kinds.append("evict")
    if "deletionTimestamp" in after["metadata"] and "deletionTimestamp" not in before["metadata"]:
        kinds.append("delete")
    for kind in kinds:
        yield Act(kind, one.scene, status, after, after["metadata"].get("deletionGracePeriodSeconds"))


def _containers(pod: JsonObject, what: str) -> list[Any]:
    return [one.get(what) for kind in _LISTS[:2] for one in pod["spec"].get(kind, ())]


def _is_evicted(pod: JsonObject) -> bool:
    return any(one.get("reason") == _EVICTED for one in pod["status"].get("conditions", ()))
