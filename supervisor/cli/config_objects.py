"""Objects beside pods on the command line: what they are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ipc.resources import registry

CONFIG_MAPS: Final = registry.CONFIG_MAPS.plural
SECRETS: Final = registry.SECRETS.plural
PRIORITY_CLASSES: Final = registry.PRIORITY_CLASSES.plural
PERSISTENT_VOLUMES: Final = registry.PERSISTENT_VOLUMES.plural
PERSISTENT_VOLUME_CLAIMS: Final = registry.PERSISTENT_VOLUME_CLAIMS.plural
_BESIDE_PODS: Final = (
    registry.CONFIG_MAPS,
    registry.SECRETS,
    registry.PRIORITY_CLASSES,
    registry.PERSISTENT_VOLUMES,
    registry.PERSISTENT_VOLUME_CLAIMS,
)
SINGULAR: Final[Mapping[str, str]] = {resource.plural: resource.singular for resource in _BESIDE_PODS}
OBJECT_ALIASES: Final[Mapping[str, str]] = {
    name: resource.plural for resource in _BESIDE_PODS for name in resource.names
}
"""Resource by the names that people type."""
