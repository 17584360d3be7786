"""The recorded scenes, played by the tests' API server: it does to pods what people have done to them, each act when
its pod is where the recorded one was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tests.cluster_wire.scene_differences import Lived
from tests.cluster_wire.stories import Act, Story, name_of
from tests.e2e.agent import Agent
from tests.e2e.cluster import NODE, Cluster
from tests.e2e.manifests import Json, config_map
from tests.support.servers.kube_api.api import ADMIN
from tests.support.servers.kube_api.resources import BY_PLURAL
from tests.support.servers.kube_api.server import KubeApiServer

SCENES_S: Final = 150.0
"""Deadline of all stories together: the longest one has two crash-loop back-offs."""
DEADLINE_S: Final = 25
"""Active deadline of a pod that has one: its container starts before, however busy the host is."""
PROBE_S: Final = 20
"""Timeout of probes: none of the recorded ones took its own, and none does here, however busy the host is."""
_PROBES: Final = ("startupProbe", "livenessProbe", "readinessProbe")
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_RESIZES: Final = ("PodResizePending", "PodResizeInProgress")
_STATES: Final = {"ContainerCreating": 0, "PodInitializing": 0, "running": 2, "terminated": 3, "CrashLoopBackOff": 4}
"""Place of a container in its life, by the reason for which it waits or by its state."""
_FAILED: Final = 1
"""Place of one that waits for another reason."""
_NOWHERE: Final = (-1, -1)
_OF_SERVER: Final = ("nodeName", "tolerations", "serviceAccount", "schedulerName", "priority", "preemptionPolicy")


class ScenePlayer:
    """Plays all stories at once on one node."""

    def __init__(self, cluster: Cluster, node: Agent, images: Mapping[str, str]) -> None:
        """`images`: of the recordings, to those of this host."""
        self._cluster = cluster
        self._node = node
        self._images = images
        self._written: dict[str, int] = {}

    def play(self, stories: list[Story]) -> None:
        """Returns when every pod has lived its story and is gone."""
        left = {story.name: (story, list(story.acts)) for story in stories}

        def goes_on() -> bool:
            pods = self._cluster.pods()
            for name, (story, acts) in tuple(left.items()):
                found = pods.get(self.name(story), {})
                if acts and _has_reached(found, acts[0]):
                    self._do(story, acts.pop(0))
                elif not acts and not found:
                    del left[name]
            return not left

        try:
            self._node.until(goes_on, "the scenes have been lived", SCENES_S)
        except AssertionError as late:
            pods = self._cluster.pods()
            stuck = [f"{name}: {acts[:1]} awaits {pods.get(self.name(of))}" for name, (of, acts) in left.items()]
            raise AssertionError("\n".join(stuck)) from late

    def lived(self, story: Story) -> Lived:
        """Copies and requests of the story's pod."""
        name = self.name(story)
        asked = self._cluster.requests(lambda request: name_of(request.verb, request.path, request.json) == name)
        return Lived(NODE, self._cluster.copies(name), asked)

    @staticmethod
    def name(story: Story) -> str:
        """Name of the story's pod here: that of a mirror ends with the node's."""
        return f"{static_name(story)}-{NODE}" if story.is_static else story.name

    def _do(self, story: Story, act: Act) -> None:
        match act.kind:
            case "create":
                self._create(act)
            case "write":
                number = self._written[story.name] = self._written.get(story.name, -1) + 1
                manifest = self._manifest(story.files[number])
                manifest["metadata"] = {**manifest["metadata"], "name": static_name(story), "annotations": {}}
                self._node.write(manifest)
            case "configure":
                data, name = act.pod["data"], act.pod["metadata"]["name"]
                self._cluster.do(lambda server: server.store.update(config_map(name, **data)))
            case "remove":
                self._node.remove(static_name(story))
            case "delete":
                self._cluster.delete(self.name(story), act.grace_s)
            case "evict":
                self._cluster.evict(self.name(story), act.grace_s)
            case "resize":
                spec = self._manifest(act.pod)["spec"]
                self._cluster.resize(self.name(story), **{one["name"]: one["resources"] for one in spec["containers"]})
            case "debug":
                self._cluster.debug(self.name(story), *self._manifest(act.pod)["spec"]["ephemeralContainers"])
            case "release":
                self._cluster.do(lambda server: _release(server, self.name(story)))

    def _create(self, act: Act) -> None:
        """Bound by the scheduler, or created with its node, as the recorded one."""
        manifest = self._manifest(act.pod)
        if _conditions(act.pod["status"]):
            self._cluster.schedule(manifest)
        else:
            manifest["spec"]["nodeName"] = NODE
            self._cluster.do(lambda server: server.writes.create(BY_PLURAL["pods"], "default", manifest, ADMIN))

    def _manifest(self, pod: Json) -> Json:
        """The recorded pod, without what is of that server and that host."""
        pod = json.loads(json.dumps(pod).replace("/tmp/", "/dev/shm/"))  # the tests' image has no /tmp
        metadata = {name: pod["metadata"][name] for name in ("name", "labels", "finalizers") if name in pod["metadata"]}
        spec = {name: value for name, value in pod["spec"].items() if name not in _OF_SERVER}
        for container in (one for kind in _CONTAINERS for one in spec.get(kind, ())):
            container["image"] = self._images.get(container["image"], container["image"])
            for probe in (container[kind] for kind in _PROBES if kind in container):
                probe["timeoutSeconds"] = PROBE_S
        if "activeDeadlineSeconds" in spec:
            spec["activeDeadlineSeconds"] = DEADLINE_S
        return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec}


def static_name(story: Story) -> str:
    """Name of the pod in its file."""
    return story.name.rpartition("-")[0]


def _release(server: KubeApiServer, name: str) -> None:
    """Take the pod's finalizers away, as a controller that has counted it."""
    pod = server.store.get("pods", "default", name)
    pod["metadata"].pop("finalizers", None)
    server.store.update(pod)


def _has_reached(pod: Mapping[str, Any], act: Act) -> bool:
    """Whether a pod is where the recorded one was before an act, or further. One that is evicted has begun to run
    here: which of the two was first in the recording, its start or the eviction, was chance."""
    before, status = act.before, pod.get("status") or {}
    if not before:
        return True
    if "deletionTimestamp" in pod.get("metadata", {}):
        return False  # the mirror that the user has deleted: the next one is awaited
    least = "Running" if act.kind == "evict" else before.get("phase", "Pending")
    if not status or _PHASES.index(status.get("phase", "Pending")) < _PHASES.index(least):
        return False
    here, told = dict(_places(status)), _conditions(status)
    return (
        status.get("observedGeneration", 0) >= before.get("observedGeneration", 0)
        and all(here.get(name, _NOWHERE) >= place for name, place in _places(before))
        and all(told.get(type_) == state for type_, state in _conditions(before).items() if state == "True")
        and all(type_ in _conditions(before) for type_ in told if type_ in _RESIZES)
        and _resources(before).items() <= _resources(status).items()
    )


def _resources(status: Mapping[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["resources"] for one in status.get("containerStatuses") or () if one.get("resources")}


def _conditions(status: Mapping[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in status.get("conditions") or ()}


def _places(status: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Place of each container in its life: restarts, and what has become of it since."""
    for one in (one for kind in _STATUSES for one in status.get(kind) or ()):
        (kind, inner), *_ = (one.get("state") or {"waiting": {}}).items()
        reason = (inner or {}).get("reason", "")
        yield one["name"], (one.get("restartCount", 0), _STATES.get(reason, _STATES.get(kind, _FAILED)))
