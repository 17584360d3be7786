"""Rows of everything beside pods."""

from __future__ import annotations

from typing import Any

from ipc.host.clock import rfc3339
from ipc.k8s.podobjects.config_objects import ObjectKind
from ipc.k8s.resources import registry
from workers.api_server.printers.events import by_time, event_row
from workers.api_server.printers.nodes import node_row
from workers.api_server.printers.tables import ROWS
from workers.api_server.printers.workers import worker_row

NOW = 1_700_000_000.0


def test_every_kind_has_a_row() -> None:
    assert set(ROWS) == {resource.plural for resource in registry.RESOURCES}
    assert {kind.plural for kind in ObjectKind} <= set(ROWS)
    assert {kind.plural for kind in ObjectKind} <= set(registry.BY_PLURAL)


def test_events() -> None:
    event = {
        "metadata": {"name": "e"},
        "type": "Warning",
        "reason": "BackOff",
        "message": " line\n",
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{app}"},
        "source": {"component": "rootlet", "host": "n"},
        "firstTimestamp": rfc3339(NOW - 300),
        "lastTimestamp": rfc3339(NOW - 10),
        "count": 3,
    }
    assert event_row(event, NOW) == (
        *("10s", "Warning", "BackOff", "pod/web", "spec.containers{app}", "rootlet, n", "line"),
        *("5m", 3, "e"),
    )
    series = {"count": 7, "lastObservedTime": rfc3339(NOW - 1)}
    assert event_row(event | {"series": series}, NOW)[7:9] == ("5m", 7)


def test_nodes() -> None:
    node: dict[str, Any] = {
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/x": "", "kubernetes.io/role": "a"}},
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "nodeInfo": {"kernelVersion": "6.1", "architecture": "amd64", "kubeletVersion": "v1"},
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        },
    }
    assert node_row(node, NOW) == (
        *("n", "NotReady,SchedulingDisabled", "a,x", "<unknown>", "v1", "192.0.2.1", "<none>", "<unknown>"),
        *("6.1 (amd64)", "<unknown>"),
    )


def test_events_of_one_second_come_in_the_order_in_which_they_were_told() -> None:
    def event(name: str, version: str, at: float) -> dict[str, Any]:
        return {"metadata": {"name": name, "resourceVersion": version}, "lastTimestamp": rfc3339(at)}

    seen = [event("started", "12", NOW), event("pulled", "9", NOW), event("later", "3", NOW + 1)]
    assert [each["metadata"]["name"] for each in sorted(seen, key=by_time)] == ["pulled", "started", "later"]


def test_workers() -> None:
    worker = {
        "name": "pods-0",
        "role": "pod-worker",
        "state": "Running",
        "pods": 3,
        "deaths": 1,
        "pid": 7,
        "incarnation": 2,
        "heartbeatAgeSeconds": 0.26,
        "breaker": "HalfOpen",
        "step": "idle",
        "counters": {"syncs": 5, "sync_errors": 0, "runtime_calls": 9, "runtime_errors": 1, "task_errors": 2},
        "resources": {"rssBytes": 3 * 1024**2, "pssBytes": None, "cpuSeconds": 1.5},
    }
    names = [column.name for column in registry.WORKERS.columns]
    row = dict(zip(names, worker_row(worker, NOW), strict=True))
    assert (row["Breaker"], row["Failed Tasks"]) == ("HalfOpen", "2")
    assert (row["Heartbeat"], row["Syncs"], row["RSS"], row["PSS"], row["CPU"]) == (
        "0.3s ago",
        "5",
        "3.0Mi",
        "<none>",
        "1.50s",
    )
    silent = {**worker, "heartbeatAgeSeconds": None, "counters": None, "resources": None, "pid": 0, "step": ""}
    assert worker_row(silent, NOW)[:8] == (*("pods-0", "pod-worker", "Running", 3, 1, "<none>", "<none>", "HalfOpen"),)
