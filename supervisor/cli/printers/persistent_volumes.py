"""Descriptions of PersistentVolumes and PersistentVolumeClaims (kubectl pkg/describe, describePersistentVolume and its
like)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ipc.resources.times import NONE, since
from ipc.resources.volume_cells import access_modes, claim, phase, storage
from supervisor.cli.printers.tables import align_tabs, printable

Json = Mapping[str, Any]
Rows = Iterator[tuple[str, str]]


def describe_volume(found: Json) -> str:
    """Everything about a volume (describePersistentVolume)."""
    return _described(_volume_lines(found))


def describe_claim(found: Json) -> str:
    """Everything about a claim (describePersistentVolumeClaim), and what it asks for."""
    return _described(_claim_lines(found))


def _described(rows: Rows) -> str:
    return align_tabs("\n".join(f"{title}:\t{printable(text)}" for title, text in rows)) + "\n"


def _volume_lines(found: Json) -> Rows:
    meta, spec, status = found["metadata"], found["spec"], found["status"]
    yield "Name", meta["name"]
    yield "Labels", _labels(meta)
    yield "StorageClass", spec.get("storageClassName", "")
    yield "Status", phase(meta, status)
    yield "Claim", claim(spec)
    yield "Reclaim Policy", spec.get("persistentVolumeReclaimPolicy", "")
    yield "Access Modes", access_modes(spec)
    yield "VolumeMode", spec.get("volumeMode", "")
    yield "Capacity", storage(spec.get("capacity"))
    yield "Node Affinity", "yes" if spec.get("nodeAffinity") else NONE
    yield "Message", status.get("message", "")
    yield "Source", ""
    yield from _source(spec)


def _source(spec: Json) -> Rows:
    if "hostPath" in spec:
        yield "    Type", "HostPath (bare host directory volume)"
        yield "    Path", spec["hostPath"]["path"]
        yield "    HostPathType", spec["hostPath"].get("type", "")
    elif "local" in spec:
        yield "    Type", "LocalVolume (a persistent volume backed by local storage on a node)"
        yield "    Path", spec["local"]["path"]
    elif "csi" in spec:
        yield "    Type", "a volume in Podman"
        yield "    Name", spec["csi"]["volumeHandle"]


def _claim_lines(found: Json) -> Rows:
    meta, spec, status = found["metadata"], found["spec"], found["status"]
    yield "Name", meta["name"]
    yield "Namespace", meta.get("namespace", "")
    yield "StorageClass", spec.get("storageClassName", "")
    yield "Status", phase(meta, status)
    yield "Volume", spec.get("volumeName", "")
    yield "Labels", _labels(meta)
    yield "Requests", storage(spec.get("resources", {}).get("requests"))
    yield "Capacity", storage(status.get("capacity"))
    yield "Access Modes", access_modes(status)
    yield "VolumeMode", spec.get("volumeMode", "")


def describe_events(events: Sequence[Json], now: float) -> str:
    """Lines of the events about one of them, longest unseen first; ``now`` in epoch seconds."""
    if not events:
        return f"Events:  {NONE}\n"
    rows = [("Type", "Reason", "Age", "Message")]
    rows += [
        (event["type"], event["reason"], since(event.get("lastTimestamp"), now), event["message"]) for event in events
    ]
    lines = ("\t".join(("", *map(printable, row))) for row in rows)
    return "Events:\n" + align_tabs("\n".join(lines)) + "\n"


def _labels(meta: Json) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(meta.get("labels", {}).items())) or NONE
