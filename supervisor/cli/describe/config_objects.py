"""Descriptions of ConfigMaps and Secrets, of names and sizes, and of classes (kubectl pkg/describe)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ipc.host.text.json_types import Json
from ipc.k8s.resources.times import since
from supervisor.cli.describe.lines import aligned, label_lines

_PREEMPTION_POLICY: Final = "PreemptLowerPriority"


def describe_runtime_class(found: Json) -> str:
    """Everything about a RuntimeClass that is acted on."""
    overhead = found.get("overhead", {}).get("podFixed", {})
    rows = [("Name", found["metadata"]["name"]), ("Handler", found["handler"])]
    if overhead:
        rows.append(("Overhead", ", ".join(f"{name}: {amount}" for name, amount in sorted(overhead.items()))))
    return aligned(f"{title}:\t{text}" for title, text in rows)


def describe_priority_class(found: Json) -> str:
    """Everything about a PriorityClass (describePriorityClass)."""
    rows = (
        ("Name", found["metadata"]["name"]),
        ("Value", str(found["value"])),
        ("GlobalDefault", str(found.get("globalDefault", False)).lower()),
        ("PreemptionPolicy", found.get("preemptionPolicy", _PREEMPTION_POLICY)),
        ("Description", found.get("description", "")),
    )
    return aligned(f"{title}:\t{text}" for title, text in rows)


def describe_config_object(found: Json, now: float) -> str:
    """Everything about one of them; ``now`` in epoch seconds."""
    return aligned(_lines(found, now))


def _lines(found: Json, now: float) -> Iterator[str]:
    meta, sizes = found["metadata"], found["dataSizes"]
    yield f"Name:\t{meta['name']}"
    yield f"Namespace:\t{meta.get('namespace', '')}"
    yield from label_lines(meta.get("labels", {}))
    if found["type"]:
        yield f"Type:\t{found['type']}"
    yield f"Immutable:\t{str(found['immutable']).lower()}"
    yield f"Source:\t{found['source']}"
    yield f"Age:\t{since(meta.get('creationTimestamp'), now)}"
    yield f"Size:\t{found['sizeBytes']} bytes"
    yield from ("", "Data", "====")
    yield from (f"{key}:\t{size} bytes" for key, size in sizes.items())
    if found["keys"] > len(sizes):
        yield f"... and {found['keys'] - len(sizes)} more"
