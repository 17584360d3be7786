"""Descriptions of ConfigMaps and Secrets, of names and sizes, and of classes (kubectl pkg/describe)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ipc.resources.times import NONE, since
from supervisor.cli.printers.tables import align_tabs, printable

Json = Mapping[str, Any]

_PREEMPTION_POLICY: Final = "PreemptLowerPriority"


def describe_priority_class(found: Json) -> str:
    """Everything about a PriorityClass (describePriorityClass)."""
    rows = (
        ("Name", found["metadata"]["name"]),
        ("Value", str(found["value"])),
        ("GlobalDefault", str(found.get("globalDefault", False)).lower()),
        ("PreemptionPolicy", found.get("preemptionPolicy", _PREEMPTION_POLICY)),
        ("Description", found.get("description", "")),
    )
    return align_tabs("\n".join(f"{title}:\t{printable(text)}" for title, text in rows)) + "\n"


def describe_config_object(found: Json, now: float) -> str:
    """Everything about one of them; ``now`` in epoch seconds."""
    lines = ("\t".join(map(printable, line.split("\t"))) for line in _lines(found, now))
    return align_tabs("\n".join(lines)) + "\n"


def _lines(found: Json, now: float) -> Iterator[str]:
    meta, sizes = found["metadata"], found["dataSizes"]
    yield f"Name:\t{meta['name']}"
    yield f"Namespace:\t{meta.get('namespace', '')}"
    labels = [f"{key}={value}" for key, value in sorted(meta.get("labels", {}).items())] or [NONE]
    yield from (f"{'' if number else 'Labels:'}\t{label}" for number, label in enumerate(labels))
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
