"""The page of differences between our requests and a kubelet's, with the reason of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.cluster_wire.differences import Difference, differences
from tests.cluster_wire.node_scenes import NOT_LIVED, NOTHING_ASKED
from tests.cluster_wire.reasons import REASONS, Reason
from tests.cluster_wire.scene_differences import OF_THIS_HOST, SceneDifference
from tests.cluster_wire.scene_reasons import SCENE_REASONS, SceneReason, is_general, reason_of
from tests.cluster_wire.shapes import Shapes

PAGE: Final = Path(__file__).parents[2] / "docs" / "cluster-requests.md"
_HEAD: Final = """# Requests of a node, beside a kubelet's

What this node asks of an API server, held against what a real kubelet 1.36 has asked in the same scenes.
`tests/e2e/test_cluster_scenes.py` lives every recorded scene on real Podman against the tests' API server, which does
to pods and Node what was done to them there, each act when its pod is where the recorded one was. It fails when this
page is not what it has seen, when a difference has no reason, or when a reason has no difference.

Compared over all scenes together: verbs, paths, query parameters, content types, and which fields bodies have. Compared
scene by scene: every value of a pod's or Node's status that the server was told, one after the other, the order of
requests, events in their words, reviews.

"""


def page(theirs: Shapes, ours: Shapes, scenes: Sequence[str], found: Sequence[SceneDifference]) -> str:
    """The whole page; `scenes` are the titles of those that were lived. Raises AssertionError for a difference without
    a reason, or a reason without a difference."""
    reasons = _reasons(theirs, ours)
    scene_reasons = _scene_reasons(found)
    parts = (_same(theirs, ours), _differing(reasons), _varying(), _scenes(scenes, scene_reasons))
    return _HEAD + "\n".join(line for part in parts for line in (*part, "")).rstrip() + "\n"


def _reasons(theirs: Shapes, ours: Shapes) -> list[tuple[Difference, Reason]]:
    found = [(one, _reason(one)) for one in differences(theirs, ours)]
    unexplained = [one for one, reason in found if reason is None]
    assert not unexplained, "\n".join(f"{one.kind} | {one.what} | {one.side}" for one in unexplained)
    used = {reason.text for _, reason in found if reason is not None}
    stale = [reason.text for reason in REASONS if reason.text not in used and not reason.varies]
    assert not stale, f"no difference is explained by: {'; '.join(stale)}"
    return [(one, reason) for one, reason in found if reason is not None]


def _scene_reasons(found: Sequence[SceneDifference]) -> list[tuple[SceneDifference, SceneReason]]:
    pairs = [(one, reason_of(one)) for one in found if not is_general(one)]
    unexplained = [one for one, reason in pairs if reason is None]
    words = (f"{one.scene} | {one.what}\n  kubelet: {one.kubelet}\n  ours: {one.ours}" for one in unexplained)
    assert not unexplained, "\n".join(words)
    used = {reason.text for _, reason in pairs if reason is not None}
    stale = [reason.text for reason in SCENE_REASONS if reason.text not in used and not reason.varies]
    assert not stale, f"no scene is explained by: {'; '.join(stale)}"
    return [(one, reason) for one, reason in pairs if reason is not None]


def _reason(difference: Difference) -> Reason | None:
    return next((reason for reason in REASONS if reason.holds_for(difference)), None)


def _same(theirs: Shapes, ours: Shapes) -> Iterator[str]:
    yield "## Requests that both make\n"
    yield "| request |\n| --- |"
    yield from (f"| `{kind}` |" for kind in sorted(theirs.keys() & ours.keys()))


def _differing(reasons: Sequence[tuple[Difference, Reason]]) -> Iterator[str]:
    yield "## Differences\n"
    yield "| request | what | whose | why |\n| --- | --- | --- | --- |"
    seen: dict[tuple[str, str, str], set[str]] = {}
    for difference, reason in reasons:
        if reason.varies:
            continue
        what = reason.what or _shown(difference.what)
        seen.setdefault((difference.kind, difference.side, reason.text), set()).add(what)
    for (kind, side, text), whats in seen.items():
        yield f"| `{kind}` | {', '.join(sorted(whats))} | {side} | {text} |"


def _varying() -> Iterator[str]:
    yield "What depends on the moment, and is not compared:\n"
    yield from (f"- `{re.sub('[.^$*]', '', one.kind).strip()}`: {one.text}" for one in REASONS if one.varies)


def _scenes(scenes: Sequence[str], reasons: Sequence[tuple[SceneDifference, SceneReason]]) -> Iterator[str]:
    yield "## Scene by scene\n"
    yield "Everywhere:\n"
    yield "| what | why |\n| --- | --- |"
    everywhere = [one for one in SCENE_REASONS if not one.varies and _is_everywhere(one)]
    yield from (f"| {one.shown} | {one.text} |" for one in everywhere)
    events = " and ".join(f"`{reason}`" for reason in OF_THIS_HOST)
    yield f"| events {events} | what this host cannot do is said; no kubelet has them |"
    yield "\nWhat depends on the moment or on the host, and is not compared:\n"
    yield from (f"- {one.text}" for one in SCENE_REASONS if one.varies)
    yield "\n| scenes | what differs beside that | why |\n| --- | --- | --- |"
    for title in scenes:
        own = {reason: None for found, reason in reasons if found.scene == title and not reason.varies}
        rows = [one for one in own if one not in everywhere]
        yield from (f"| {title} | {one.shown} | {one.text} |" for one in rows)
        if not rows:
            yield f"| {title} | nothing | |"
    yield from (f"| {title} | not lived | {why} |" for title, why in NOT_LIVED.items())
    yield from (f"| {title} | nothing | only the server has said something |" for title in NOTHING_ASKED)


def _is_everywhere(reason: SceneReason) -> bool:
    return reason.scene in ("", "node-")


def _shown(what: str) -> str:
    part, _, rest = what.partition(": ")
    words = {"queries": "parameter", "content_types": "content type", "body": "field"}
    return f"{words[part]} `{re.sub('^[.]', '', rest)}`" if part in words else "the request"
