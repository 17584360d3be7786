"""Reload by SIGHUP: the settings that may, of a file that was read anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec
from msgspec.structs import FieldInfo

from supervisor.config.settings import Settings
from supervisor.config.shown_settings import flat_settings

RELOADABLE: Final = frozenset(
    {
        "nodeLabels",
        "syncFrequency",
        "maxPods",
        "allowedUnsafeSysctls",
        "nodeStatusUpdateFrequency",
        "housekeepingPeriod",
        "containerLogMaxSize",
        "containerLogMaxFiles",
        "containerLogMaxWorkers",
        "containerLogMonitorInterval",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "imageMinimumGCAge",
        "imageMaximumGCAge",
        "imageGCScope",
        "pinnedImages",
        "eventHistory.maxEvents",
        "eventHistory.ttl",
        "workers.count",
        "workers.podsPerWorker",
        "workers.stopTimeout",
        "logging.verbosity",
        "logging.vmodule",
        "cluster.kubeAPIQPS",
        "cluster.kubeAPIBurst",
        "cluster.eventRecordQPS",
        "cluster.eventBurst",
    }
)
"""Settings that SIGHUP may change: those that the master looks up anew each time, the number of workers, what the node
worker is told by a message, and what every process reads on the board at its heartbeat. The other settings are in the
memory of forked children, in labels, or decide where things lie."""
_S = TypeVar("_S", bound=msgspec.Struct)


def diff_reload(old: Settings, new: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Settings after a reload: those in force from now on, and the names that need a restart."""
    return _take_reloadable(old, new, ""), tuple(
        name for name, before, after in _differences(old, new, "") if name not in RELOADABLE and before != after
    )


def changed_settings(before: Settings, after: Settings) -> tuple[str, ...]:
    """``maxPods: 110 -> 200`` for each setting that differs; of what may be a secret only the name."""
    shown_before, shown_after = flat_settings(before), flat_settings(after)
    return tuple(
        f"{name}: {shown_before[name]} -> {shown_after[name]}"
        if shown_before[name] != shown_after[name]
        else f"{name}: changed"
        for name, old, new in _differences(before, after, "")
        if old != new
    )


def _take_reloadable(old: _S, new: _S, prefix: str) -> _S:
    taken: dict[str, object] = {}
    for field, name in _named_fields(old, prefix):
        value = getattr(old, field.name)
        if isinstance(value, msgspec.Struct):
            taken[field.name] = _take_reloadable(value, getattr(new, field.name), f"{name}.")
        elif name in RELOADABLE:
            taken[field.name] = getattr(new, field.name)
    return msgspec.structs.replace(old, **taken)


def _named_fields(section: msgspec.Struct, prefix: str) -> Iterator[tuple[FieldInfo, str]]:
    return ((field, prefix + field.encode_name) for field in msgspec.structs.fields(section))


def _differences(old: msgspec.Struct, new: msgspec.Struct, prefix: str) -> Iterator[tuple[str, object, object]]:
    for field, name in _named_fields(old, prefix):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if isinstance(before, msgspec.Struct):
            yield from _differences(before, after, f"{name}.")
        else:
            yield name, before, after
