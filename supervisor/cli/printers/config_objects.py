"""ConfigMaps and Secrets for people: names and sizes (pkg/printers/internalversion/printers.go, printConfigMap and
printSecret; kubectl pkg/describe, describeSecret). The agent tells no values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from supervisor.cli.printers.human import NONE, since
from supervisor.cli.printers.tables import align_tabs, printable

Json = Mapping[str, Any]

CONFIG_MAP_HEADER: Final = ("NAME", "DATA", "AGE")
SECRET_HEADER: Final = ("NAME", "TYPE", "DATA", "AGE")
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
