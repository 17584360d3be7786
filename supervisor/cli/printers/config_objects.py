"""ConfigMaps and Secrets for people, names and sizes, and classes (pkg/printers/internalversion/printers.go,
printConfigMap, printSecret, printPriorityClass, printRuntimeClass; kubectl pkg/describe). The agent tells no values of
the former."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from supervisor.cli.printers.human import NONE, since
from supervisor.cli.printers.tables import align_tabs, printable

Json = Mapping[str, Any]

CONFIG_MAP_HEADER: Final = ("NAME", "DATA", "AGE")
SECRET_HEADER: Final = ("NAME", "TYPE", "DATA", "AGE")
PRIORITY_CLASS_HEADER: Final = ("NAME", "VALUE", "GLOBAL-DEFAULT", "AGE", "PREEMPTIONPOLICY")
RUNTIME_CLASS_HEADER: Final = ("NAME", "HANDLER", "AGE")
_PREEMPTION_POLICY: Final = "PreemptLowerPriority"
_WIDE: Final = ("SIZE", "IMMUTABLE", "SOURCE")
WIDE_CONFIG_MAP_HEADER: Final = (*CONFIG_MAP_HEADER, *_WIDE)
WIDE_SECRET_HEADER: Final = (*SECRET_HEADER, *_WIDE)


def config_map_row(found: Json, now: float, *, wide: bool = False) -> tuple[str, ...]:
    """One row under CONFIG_MAP_HEADER or WIDE_CONFIG_MAP_HEADER; ``now`` in epoch seconds."""
    meta = found["metadata"]
    row = (meta["name"], str(found["keys"]), since(meta.get("creationTimestamp"), now))
    return (*row, *_wide_cells(found)) if wide else row


def secret_row(found: Json, now: float, *, wide: bool = False) -> tuple[str, ...]:
    """One row under SECRET_HEADER or WIDE_SECRET_HEADER; ``now`` in epoch seconds."""
    name, *rest = config_map_row(found, now, wide=wide)
    return (name, found["type"], *rest)


def priority_class_row(found: Json, now: float) -> tuple[str, ...]:
    """One row under PRIORITY_CLASS_HEADER; ``now`` in epoch seconds."""
    return (
        found["metadata"]["name"],
        str(found["value"]),
        str(found.get("globalDefault", False)).lower(),
        since(found["metadata"].get("creationTimestamp"), now),
        found.get("preemptionPolicy", _PREEMPTION_POLICY),
    )


def runtime_class_row(found: Json, now: float) -> tuple[str, ...]:
    """One row under RUNTIME_CLASS_HEADER; ``now`` in epoch seconds."""
    meta = found["metadata"]
    return meta["name"], found["handler"], since(meta.get("creationTimestamp"), now)


def describe_runtime_class(found: Json) -> str:
    """Everything about a RuntimeClass that is acted on."""
    overhead = found.get("overhead", {}).get("podFixed", {})
    rows = [("Name", found["metadata"]["name"]), ("Handler", found["handler"])]
    rows += (
        [("Overhead", ", ".join(f"{name}: {amount}" for name, amount in sorted(overhead.items())))] if overhead else []
    )
    return align_tabs("\n".join(f"{title}:\t{printable(text)}" for title, text in rows)) + "\n"


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


def _wide_cells(found: Json) -> Sequence[str]:
    return str(found["sizeBytes"]), str(found["immutable"]).lower(), found["source"]


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
