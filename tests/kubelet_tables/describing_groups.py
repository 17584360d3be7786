"""Adapters of the groups about what `describe` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ipc.k8s.podresources.qos import compute_pod_qos
from supervisor.cli.describe.container import describe_container, port_texts
from supervisor.cli.describe.lines import annotation_lines
from supervisor.cli.describe.other_objects import describe_namespace, smart_label
from supervisor.cli.describe.persistent_volumes import describe_claim, describe_volume
from supervisor.cli.describe.pod import describe_pod
from tests.kubelet_tables.later import Later, Result
from tests.kubelet_tables.translate import Json, pod, wall, without_nulls

_OURS: Final = ("Source:", "Worker:", "Sandbox:", "Last Sync:")
"""Lines that only Rootlet's descriptions have."""
_ZERO_TIME: Final = "Mon, 01 Jan 0001 00:00:00 +0000"
"""Go's zero time in words; without a time ours says that it is unknown."""
_MOUNTED_ELSEWHERE: Final = ("GCEPersistentDisk", "NFS", "ISCSI", "Glusterfs", "RBD", "Quobyte")
_NOT_DESCRIBED: Final[Mapping[str, str]] = {
    "ConfigMap": "never: values of ConfigMaps are not sent along to be described, their sizes are",
    "Secret": "never: annotations of Secrets are not sent along to be described",
    "Node": "never: a lease, limits in percent of the node; what is used stands there instead",
}


def _describe(case: Json) -> Result:
    """Line by line, however wide the columns are."""
    kind = case["describer"]
    if kind not in _DESCRIBERS:
        raise Later(_NOT_DESCRIBED.get(kind, f"never: a description of a {kind}, which nothing here has"))
    output = str(case["output"]).replace(_ZERO_TIME, "<unknown>")
    if any(f"Type: {words} " in " ".join(output.split()) for words in _MOUNTED_ELSEWHERE):
        raise Later("never: a volume of a kind that a rootless host cannot mount")
    objects = [without_nulls(each) for each in case["objects"]]
    found = next(each for each in objects if each["kind"] == kind)
    events = [each for each in objects if each["kind"] == "Event" and _is_about(each, found)]
    got = _DESCRIBERS[kind](found, events if case["show_events"] else None, wall(case["now"]))
    return (case["error"], case["object_name"], _lines(output)), (None, found["metadata"].get("name", ""), _lines(got))


def _is_about(event: Json, found: Json) -> bool:
    about = event.get("involvedObject", {})
    return bool(about.get("kind") == found["kind"] and about.get("name") == found["metadata"].get("name"))


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip() and not line.startswith(_OURS)]


def _pod_text(found: Json, events: list[Json] | None, now: float) -> str:
    """With the QoS class that the API server sends along."""
    status = {"qosClass": compute_pod_qos(pod(found)), **found.get("status", {})}
    return describe_pod({**found, "status": status}, {}, events, now)


def _namespace_text(found: Json, events: list[Json] | None, now: float) -> str:
    del events, now
    if "conditions" in found["status"]:
        raise Later("never: conditions of a Namespace, which here is only a name")
    return describe_namespace(found)


_DESCRIBERS: Final[Mapping[str, Callable[[Json, Any, float], str]]] = {
    "Pod": _pod_text,
    "Namespace": _namespace_text,
    "PersistentVolume": describe_volume,
    "PersistentVolumeClaim": lambda found, events, now: describe_claim(found, (), events, now),
}


def _describe_container(case: Json) -> Result:
    """Every element is somewhere in the text."""
    text = "\n".join(
        describe_container(without_nulls(case["container"]), without_nulls(case["status"]), {"metadata": {}})
    )
    return [], [element for element in case["expected_elements"] if element not in text]


def _describe_container_ports(case: Json) -> Result:
    ports = without_nulls(case["ports"])
    got = tuple(port_texts(ports, field) for field in ("containerPort", "hostPort"))
    return (case["expected_container"], case["expected_host"]), got


def _describe_labels_multiline(case: Json) -> Result:
    return case["expect_print"], "".join(f"{line}\n" for line in annotation_lines(case["annotations"] or {}))


def _smart_label(case: Json) -> Result:
    return case["expected"], smart_label(case["input"])


ADAPTERS: Final[Mapping[str, Callable[[Json], Result]]] = {
    "describe": _describe,
    "describe_container": _describe_container,
    "describe_container_ports": _describe_container_ports,
    "describe_labels_multiline": _describe_labels_multiline,
    "smart_label": _smart_label,
}
