"""A scene as this node has lived it, beside the recorded one: what the server was told, by which requests and in which
order, and which events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.cluster_wire.differences import Difference, differences
from tests.cluster_wire.recordings import Recorded
from tests.cluster_wire.shapes import kind_of, of_recordings, of_requests
from tests.cluster_wire.stories import Story
from tests.cluster_wire.told import NEVER, in_general, told
from tests.support.servers.kube_api.failures import JsonObject
from tests.support.servers.kube_api.requests import Request

RECORDED_NODE: Final = "node1"
THEN: Final = " → "
OF_THIS_HOST: Final = ("UnsupportedField", "ResizeByRestart")
"""Reasons of events by which this node says what its host cannot do: no kubelet has them, other hosts have others."""
_PROBED: Final = "Unhealthy"
"""Probes of several kinds fail in any order."""


@dataclass(frozen=True)
class Lived:
    """An object's copies and requests, as a server has seen them here."""

    node: str
    copies: Sequence[JsonObject]
    requests: Sequence[Request]


class SceneDifference(NamedTuple):
    """One fact that is another one in the two."""

    scene: str
    what: str
    kubelet: str
    ours: str
    same_end: bool = False
    """Both begin and end with the same, and one has all that the other has: steps were told together."""
    of_request: Difference | None = None
    """The difference of requests that it is."""


def of_story(story: Story, lived: Lived) -> Iterator[SceneDifference]:
    """Differences of one pod's story, in the order of facts."""
    theirs, ours = told(story.copies, RECORDED_NODE), told(lived.copies, lived.node)
    for fact in sorted(theirs.keys() | ours.keys()):
        yield from _unequal(story.title, fact, theirs.get(fact, [NEVER]), ours.get(fact, [NEVER]))
    yield from _unequal(story.title, "order of requests", _order(story.requests), _order(lived.requests))
    yield from _of_requests(story.title, story.requests, lived)


def of_node(scene: str, recorded: Sequence[Recorded], lived: Lived) -> Iterator[SceneDifference]:
    """Differences of a scene of the Node, in the order of facts; the Node's copies are among the recorded answers."""
    copies = [one.answer for one in recorded if _is_node(one.answer)]
    theirs, ours = told(copies, RECORDED_NODE), told(lived.copies, lived.node)
    for fact in sorted(theirs.keys() | ours.keys()) if copies else ():
        yield from _unequal(scene, f"Node: {fact}", theirs.get(fact, [NEVER]), ours.get(fact, [NEVER]))
    yield from _of_requests(scene, recorded, lived)


def of_reviews(scene: str, recorded: Iterable[Recorded], lived: Iterable[Request]) -> Iterator[SceneDifference]:
    """Differences of the reviews of users with a certificate and with a token."""
    theirs, ours = _reviews(one.body for one in recorded), _reviews(one.json for one in lived)
    for who in sorted(theirs.keys() | ours.keys()):
        for what in sorted(theirs.get(who, set()) ^ ours.get(who, set())):
            sides = ("yes", NEVER) if what in theirs.get(who, ()) else (NEVER, "yes")
            yield SceneDifference(scene, f"review of {who}: {what}", *sides)


def _reviews(bodies: Iterable[Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for body in bodies:
        if isinstance(body, dict) and body.get("kind") == "SubjectAccessReview":
            spec, who = body["spec"], "somebody with a certificate"
            if spec["user"].startswith("system:serviceaccount:"):
                who = "somebody with a token"
            asked = spec["resourceAttributes"]
            found.setdefault(who, set()).add(f"{asked.get('verb') or 'no verb'} {asked['subresource']}")
    return found


def _is_node(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.get("kind") == "Node" and "conditions" in answer.get("status", {})


def _of_requests(scene: str, recorded: Sequence[Recorded], lived: Lived) -> Iterator[SceneDifference]:
    their_events, our_events = _events(recorded, RECORDED_NODE), _events(lived.requests, lived.node)
    for subject in sorted(their_events.keys() | our_events.keys()):
        theirs, ours = their_events.get(subject, []), our_events.get(subject, [])
        yield from _unequal(scene, f"events {subject}", theirs, ours)
    for found in differences(of_recordings(recorded), of_requests(lived.requests)):
        sides = ("yes", NEVER) if found.side == "kubelet" else (NEVER, "yes")
        yield SceneDifference(scene, f"{found.kind} {found.what}", *sides, of_request=found)


def _unequal(scene: str, what: str, theirs: Sequence[str], ours: Sequence[str]) -> Iterator[SceneDifference]:
    if list(theirs) == list(ours):
        return
    ends = bool(theirs and ours) and (theirs[0], theirs[-1]) == (ours[0], ours[-1])
    same_end = ends and (_has_all(theirs, ours) or _has_all(ours, theirs))
    yield SceneDifference(scene, what, THEN.join(theirs) or NEVER, THEN.join(ours) or NEVER, same_end)


def _has_all(values: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether these have the wanted ones in their order, among others."""
    left = iter(values)
    return all(each in left for each in wanted)


def _order(requests: Iterable[Recorded | Request]) -> list[str]:
    """Kinds of requests that change the pod; a kind that follows itself counts once."""
    found: list[str] = []
    for one in requests:
        kind = kind_of(one.verb, one.path, is_watch=one.is_watch)
        if one.verb != "GET" and "/pods" in one.path and kind not in found[-1:]:
            found.append(kind)
    return found


def _events(requests: Iterable[Recorded | Request], node: str) -> dict[str, list[str]]:
    """By the part of the object that they are about; each once, in the order of the first. Those of a Node and of
    probes stand in the order of their words: they come from several places at once."""
    found: dict[str, list[str]] = {}
    for one in requests:
        body: Any = one.body if isinstance(one, Recorded) else one.json
        is_event = one.verb == "POST" and isinstance(body, dict) and body.get("kind") == "Event"
        if not is_event or body["reason"] in OF_THIS_HOST:
            continue
        said = in_general(f"{body['type']} {body['reason']}: {body['message']}", node)
        subject = body["involvedObject"].get("fieldPath", "") or f"of the {body['involvedObject']['kind']}"
        known = found.setdefault(f"{subject}, of probes" if body["reason"] == _PROBED else subject, [])
        if said not in known:
            known.append(said)
    is_mixed = {subject: subject.endswith((", of probes", "of the Node")) for subject in found}
    return {subject: sorted(said) if is_mixed[subject] else said for subject, said in found.items()}
