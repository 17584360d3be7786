"""Objects beside pods on the command line: what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONFIG_MAPS: Final = "configmaps"
SECRETS: Final = "secrets"
PRIORITY_CLASSES: Final = "priorityclasses"
RUNTIME_CLASSES: Final = "runtimeclasses"
SINGULAR: Final[Mapping[str, str]] = {
    CONFIG_MAPS: "configmap",
    SECRETS: "secret",
    PRIORITY_CLASSES: "priorityclass",
    RUNTIME_CLASSES: "runtimeclass",
}
OBJECT_ALIASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("configmap", "configmaps", "cm"), CONFIG_MAPS),
    **dict.fromkeys(("secret", "secrets"), SECRETS),
    **dict.fromkeys(("priorityclass", "priorityclasses", "pc"), PRIORITY_CLASSES),
    **dict.fromkeys(("runtimeclass", "runtimeclasses"), RUNTIME_CLASSES),
}
"""Resource by the names that people type."""
