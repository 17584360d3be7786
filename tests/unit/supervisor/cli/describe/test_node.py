"""Descriptions of the node: what is not known of its use is said not to be."""

from __future__ import annotations

from typing import Any

from supervisor.cli.describe.node import describe_node

UNKNOWN = "<unknown>"


NODE: dict[str, Any] = {
    "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"}},
    "status": {
        "capacity": {"cpu": "2", "memory": "1Gi", "pods": "10"},
        "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine"}],
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        "nodeInfo": {"kubeletVersion": "v1"},
        "images": [{"names": ["x\x1b[2J"], "sizeBytes": 1024}],
    },
}

USAGE = {
    "name": "n",
    "namespace": "default",
    "cpu": {"source": "cgroup", "nano_cores": 100_000_000},
    "memory": {"source": "processes", "working_set": 1024**2},
}


def asking(name: str, cpu: str, phase: str = "Running", init_cpu: str = "0") -> dict[str, Any]:
    containers = [{"resources": {"requests": {"cpu": cpu}}}]
    inits = [{"resources": {"requests": {"cpu": init_cpu}}}]
    spec = {"containers": containers, "initContainers": inits}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": {"phase": phase}}


def test_what_is_reserved_and_used_of_the_node() -> None:
    pods = [asking("a", "500m"), asking("b", "250m", init_cpu="750m"), asking("done", "1", "Succeeded")]
    text = describe_node(NODE, pods, USAGE, None, 1_767_225_660.0)
    rows = [line.split() for line in text.splitlines()]
    assert ["cpu", "1250m", "(62%)", "0", "(0%)", "100m"] in rows
    assert ["memory", "0", "(0%)", "0", "(0%)", "1Mi"] in rows
    assert ["Non-terminated", "Pods:", "(2", "in", "total)"] in rows
    assert "\x1b" not in text


def test_a_node_without_statistics_is_described_all_the_same() -> None:
    assert UNKNOWN in describe_node(NODE, [], {}, None, 1_767_225_660.0)


def test_a_node_begins_and_ends_as_kubectls() -> None:
    text = describe_node(NODE, [], {}, [], 1_767_225_660.0)
    titles = ["Name:", "Roles:", "Labels:", "Annotations:", "CreationTimestamp:", "Taints:", "Unschedulable:"]
    rows = [line.split(maxsplit=1) for line in text.splitlines()]
    assert [row[0] for row in rows[:8]] == [*titles, "Conditions:"]
    assert [rows[at][1] for at in (1, 3, 5, 6)] == ["<none>", "<none>", "<none>", "false"]
    assert rows[-1] == ["Events:", "<none>"]


def test_roles_taints_and_events_of_a_node() -> None:
    labels = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/": "", "kubernetes.io/role": "db"}
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]
    node = NODE | {"metadata": {"name": "n", "labels": labels}, "spec": {"unschedulable": True, "taints": taints}}
    seen = {"lastTimestamp": "2026-01-01T00:00:00Z", "firstTimestamp": "2026-01-01T00:00:00Z", "metadata": {}}
    event = {**seen, "type": "Normal", "reason": "Starting", "source": {"component": "rootlet"}, "message": "go\x1b"}
    lines = [line.split() for line in describe_node(node, [], {}, [event], 1_767_225_660.0).splitlines()]
    assert ["Roles:", "db,worker"] in lines
    assert lines[lines.index(["Taints:", "a:NoExecute"]) + 1] == ["k=v:NoSchedule"]
    assert ["Unschedulable:", "true"] in lines
    assert lines[-1][:4] == ["Normal", "Starting", "60s", "rootlet"]
    assert "\x1b" not in "".join(lines[-1])
