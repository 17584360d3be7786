"""Columns of the tables, as upstream's printers have them (pkg/printers/internalversion/printers.go, AddHandlers).

Ours beside them: what of a pod can be reached from outside it; of objects beside pods size, state and source.
"""

from __future__ import annotations

from typing import Final

from ipc.k8s.resources.resource import AGE, NAME, Column, wide

PODS: Final = (
    NAME,
    Column("Ready"),
    Column("Status"),
    Column("Restarts"),
    AGE,
    *map(wide, ("IP", "Node", "Nominated Node", "Readiness Gates", "Ports", "Held Up")),
)
NODES: Final = (
    NAME,
    Column("Status"),
    Column("Roles"),
    AGE,
    Column("Version"),
    *map(wide, ("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")),
)
EVENTS: Final = (
    *map(Column, ("Last Seen", "Type", "Reason", "Object")),
    wide("Subobject"),
    wide("Source"),
    Column("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name", format="name"),
)
_SUMMARY: Final = tuple(map(wide, ("Size", "Immutable", "Source")))
CONFIG_MAPS: Final = (NAME, Column("Data"), AGE, *_SUMMARY)
SECRETS: Final = (NAME, Column("Type"), Column("Data"), AGE, *_SUMMARY)
PRIORITY_CLASSES: Final = (
    NAME,
    Column("Value", type="integer", format="int64"),
    Column("Global-Default", type="boolean"),
    AGE,
    Column("PreemptionPolicy"),
)
RUNTIME_CLASSES: Final = (NAME, Column("Handler"), AGE)
PERSISTENT_VOLUMES: Final = (
    NAME,
    *map(Column, ("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass")),
    *map(Column, ("VolumeAttributesClass", "Reason")),
    AGE,
    wide("VolumeMode"),
)
PERSISTENT_VOLUME_CLAIMS: Final = (
    NAME,
    *map(Column, ("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass")),
    AGE,
    wide("VolumeMode"),
)
NAMESPACES: Final = (NAME, Column("Status"), AGE)
WORKERS: Final = (
    NAME,
    *map(Column, ("Role", "Status", "Pods", "Deaths", "PID", "Heartbeat", "Breaker")),
    *map(wide, ("Life", "Syncs", "Errors", "Calls", "Failed Calls", "Failed Tasks", "RSS", "PSS", "CPU")),
    Column("Step"),
)
