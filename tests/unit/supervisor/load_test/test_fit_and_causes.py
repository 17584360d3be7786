"""Pods that do not fit are refused with the number that does; a pod that is not Ready has its newest warning."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.load_test.run import PROCESSES_BYTES, causes, refusal

ROOMY = 10**12


def node(pods: str = "110", **spec: Any) -> dict[str, Any]:
    return {"spec": spec, "status": {"allocatable": {"pods": pods}}}


def pods(running: int, over: int = 0) -> list[dict[str, Any]]:
    phases = ["Running"] * running + ["Succeeded"] * over
    return [{"status": {"phase": phase}} for phase in phases]


@pytest.mark.parametrize(
    ("of", "there", "wanted", "available", "said"),
    [
        (node(), pods(10), 100, ROOMY, ""),
        (node(), pods(10, over=50), 100, ROOMY, ""),
        (node(), pods(11), 100, ROOMY, "the node takes 110 pods, and 11 are there; --pods 99 fits"),
        (node(pods="5"), pods(9), 1, ROOMY, "--pods 0 fits"),
        (node(unschedulable=True), [], 1, ROOMY, "drained"),
        (node(), [], 10, 10 * PROCESSES_BYTES, ""),
        (node(), [], 10, 10 * PROCESSES_BYTES - 1, "--pods 9 fits"),
        ({}, [], 100, ROOMY, ""),
    ],
)
def test_refusal(of: dict[str, Any], there: list[dict[str, Any]], wanted: int, available: int, said: str) -> None:
    found = refusal(of, there, wanted, available)
    assert said in found
    assert bool(found) == bool(said)


def event(pod: str, at: str, reason: str, type_: str = "Warning") -> dict[str, Any]:
    return {"type": type_, "reason": reason, "message": "m", "lastTimestamp": at, "involvedObject": {"name": pod}}


def test_the_newest_warning_of_each_pod_is_its_cause() -> None:
    events = [
        event("a", "2026-01-01T00:00:02Z", "BackOff"),
        event("a", "2026-01-01T00:00:01Z", "Failed"),
        event("a", "2026-01-01T00:00:03Z", "Pulling", "Normal"),
        event("c", "2026-01-01T00:00:03Z", "Failed"),
    ]
    not_ready = {"b": "not Ready in time", "a": "Failed: Evicted"}
    assert causes(not_ready, events) == ["a: Failed: Evicted; BackOff: m", "b: not Ready in time"]
