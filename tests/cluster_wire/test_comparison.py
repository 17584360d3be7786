"""The comparison itself, on records made here: what people did is found in them, and no difference is lost."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.cluster_wire.recordings import Recorded
from tests.cluster_wire.scene_differences import Lived, of_story
from tests.cluster_wire.stories import Story, stories
from tests.cluster_wire.told import in_general, told
from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.requests import Request

PODS = "/api/v1/namespaces/default/pods"


def pod_copy(phase: str = "Pending", **conditions: str) -> JsonObject:
    told = [{"type": type_, "status": status} for type_, status in conditions.items()]
    spec = {"nodeName": "node1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "1m"}}}]}
    metadata = {"name": "p", "namespace": "default", "uid": "1"}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": told}}


def changed(pod: JsonObject, **metadata: Any) -> JsonObject:
    made = copy.deepcopy(pod)
    made["metadata"] |= metadata
    return made


def record(at: float, verb: str = "GET", path: str = "/api/v1/pods", **more: Any) -> Recorded:
    empty = {"body": None, "answer": None, "is_event": False} | more
    return Recorded(
        "s", int(at), "kubelet", verb, path, {}, {"content-type": "application/json"}, code=200, time_s=at, **empty
    )


def event(at: float, type_: str, pod: JsonObject) -> Recorded:
    return record(at, answer={"type": type_, "object": pod}, is_event=True)


def deletion(pod: JsonObject, grace_s: int) -> JsonObject:
    return changed(pod, deletionTimestamp="2026-11-22T09:00:00Z", deletionGracePeriodSeconds=grace_s)


def story_of(*records: Recorded) -> Story:
    (found,) = stories(records)
    return found


def kinds(story: Story) -> list[str]:
    return [act.kind for act in story.acts]


def test_acts_of_people_are_found_between_copies() -> None:
    first, runs = pod_copy(), pod_copy("Running")
    larger = copy.deepcopy(runs)
    larger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2m"
    debugged = copy.deepcopy(larger)
    debugged["spec"]["ephemeralContainers"] = [{"name": "dbg"}]
    copies = (first, runs, larger, debugged, deletion(debugged, 5), deletion(debugged, 0))
    records = [event(at, "MODIFIED" if at else "ADDED", each) for at, each in enumerate(copies)]
    story = story_of(*records, record(9, "DELETE", f"{PODS}/p"))
    assert kinds(story) == ["create", "resize", "debug", "delete"], "the kubelet's own deletion is nobody's act"
    assert story.acts[1].before["phase"] == "Running"
    assert story.acts[-1].grace_s == 5
    assert [one.verb for one in story.requests] == ["DELETE"]


def test_an_eviction_is_one_act_with_its_deletion() -> None:
    marked = pod_copy("Running")
    marked["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    copies = (pod_copy(), pod_copy("Running"), marked, deletion(marked, 7))
    story = story_of(*(event(at, "MODIFIED" if at else "ADDED", each) for at, each in enumerate(copies)))
    assert kinds(story) == ["create", "evict"]
    assert story.acts[-1].grace_s == 7


def test_facts_are_told_in_their_order() -> None:
    found = told([pod_copy(), pod_copy(Ready="False"), pod_copy("Running", Ready="True"), pod_copy("Running")], "node1")
    assert found["phase"] == ["Pending", "Running"]
    assert found["condition Ready"] == ["-", "False", "True", "-"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("on node1 after 1.5s at 192.0.2.1:80", "on NODE after SECONDS at ADDRESS"),
        ('image "localhost/busybox:1.35"', 'image "IMAGE"'),
        ("back-off 10s restarting", "back-off 10s restarting"),
    ],
)
def test_words_of_one_host_are_words_of_any(text: str, words: str) -> None:
    assert in_general(text, "node1") == words


def differing(ours: list[JsonObject], *requests: Request) -> dict[str, bool]:
    """Facts that differ from those of a recorded pod that became ready, and whether steps were told together."""
    copies = (pod_copy(), pod_copy(Ready="False"), pod_copy("Running", Ready="True"))
    story = story_of(*(event(at, "MODIFIED" if at else "ADDED", each) for at, each in enumerate(copies)))
    return {found.what: found.same_end for found in of_story(story, Lived("node1", ours, requests))}


def test_nothing_differs_from_itself() -> None:
    assert differing([pod_copy(), pod_copy(Ready="False"), pod_copy("Running", Ready="True")]) == {}


def test_a_step_that_is_not_told_and_an_end_that_is_another() -> None:
    assert differing([pod_copy(), pod_copy("Running", Ready="True")]) == {"condition Ready": True}
    assert differing([pod_copy(), pod_copy("Running", Ready="False")]) == {"condition Ready": False}


def test_a_request_that_no_kubelet_makes() -> None:
    same = [pod_copy(), pod_copy(Ready="False"), pod_copy("Running", Ready="True")]
    request = Request("DELETE", f"{PODS}/p", {}, "", b"", "system:node:node1")
    assert differing(same, request).keys() == {
        "order of requests",
        "DELETE /api/v1/namespaces/{namespace}/pods/{name} request",
    }
