"""Facts that a server was told of one pod or Node: the values of each, one after the other, in words that are the same
for every node. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tests.support.servers.kube_api.failures import JsonObject

Told = dict[str, list[str]]
"""Fact to its values; two that follow each other differ."""
NEVER: Final = "-"
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_STATES: Final = ("waiting", "running", "terminated")
_LAST: Final = ("reason", "exitCode")
_WORDS: Final = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "ID"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s)\b(?! restarting)"), "SECONDS"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?"), "ADDRESS"),
    (re.compile(r"(localhost(:\d+)?|ADDRESS|docker\.io)/[\w./-]+(:[\w.-]+)?"), "IMAGE"),
    (re.compile(r"\b\d+Ki\b"), "BYTES"),
    (re.compile(r"Threshold quantity: \w+"), "Threshold quantity: N"),
    (re.compile(r"used: \d+, capacity: \d+"), "used: N, capacity: N"),
)


def told(copies: Iterable[JsonObject], node: str) -> Told:
    """Facts of copies in their order: of a Node, or of a pod from the one on that has a node's name."""
    found: Told = {}
    for number, pod in enumerate(each for each in copies if each["kind"] == "Node" or each["spec"].get("nodeName")):
        facts = dict(_facts(pod.get("status") or {}))
        for name in found.keys() | facts.keys():
            value = in_general(facts.get(name, NEVER), node)
            values = found.setdefault(name, [NEVER] if number else [])
            if not values or values[-1] != value:
                values.append(value)
    return found


def in_general(text: str, node: str) -> str:
    """Without the names, numbers and addresses of one node."""
    for pattern, word in _WORDS:
        text = pattern.sub(word, text)
    return re.sub(rf"\b{node}\b", "NODE", text)


def _facts(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("phase", "reason", "message", "observedGeneration"):
        if status.get(name) not in (None, ""):
            yield name, str(status[name])
    for condition in status.get("conditions") or ():
        said = [condition["status"], condition.get("reason") or "", condition.get("message") or ""]
        yield f"condition {condition['type']}", ": ".join(filter(None, said))
    for one in (one for kind in _STATUSES for one in status.get(kind) or ()):
        yield from _of_container(one)
    yield from _amounts("", status)


def _of_container(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name = one["name"]
    yield f"{name}: state", _state(one.get("state") or {})
    if last := _state(one.get("lastState") or {}):
        yield f"{name}: last state", last
    for fact in ("ready", "started", "restartCount"):
        if one.get(fact) is not None:
            yield f"{name}: {fact}", str(one[fact])
    yield from _amounts(f"{name}: ", one)


def _amounts(prefix: str, of: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for fact in ("resources", "allocatedResources"):
        if of.get(fact):
            yield f"{prefix}{fact}", json.dumps(of[fact], sort_keys=True).replace('"', "")


def _state(state: Mapping[str, Any]) -> str:
    for kind in _STATES:
        if kind in state:
            inner = state[kind] or {}
            said = [str(inner[name]) for name in (*_LAST, "message") if inner.get(name) not in (None, "")]
            return " ".join([kind, *said])
    return ""
