"""Objects beside pods on the command line: what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CONFIG_MAPS: Final = "configmaps"
SECRETS: Final = "secrets"
PRIORITY_CLASSES: Final = "priorityclasses"
PERSISTENT_VOLUMES: Final = "persistentvolumes"
PERSISTENT_VOLUME_CLAIMS: Final = "persistentvolumeclaims"
SINGULAR: Final[Mapping[str, str]] = {
    CONFIG_MAPS: "configmap",
    SECRETS: "secret",
    PRIORITY_CLASSES: "priorityclass",
    PERSISTENT_VOLUMES: "persistentvolume",
    PERSISTENT_VOLUME_CLAIMS: "persistentvolumeclaim",
}
OBJECT_ALIASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("configmap", "configmaps", "cm"), CONFIG_MAPS),
    **dict.fromkeys(("secret", "secrets"), SECRETS),
    **dict.fromkeys(("priorityclass", "priorityclasses", "pc"), PRIORITY_CLASSES),
    **dict.fromkeys(("persistentvolume", "persistentvolumes", "pv"), PERSISTENT_VOLUMES),
    **dict.fromkeys(("persistentvolumeclaim", "persistentvolumeclaims", "pvc"), PERSISTENT_VOLUME_CLAIMS),
}
"""Resource by the names that people type."""
