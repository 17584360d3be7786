"""What Kubernetes refuses about an object. One module per subject; every check yields FieldErrors with JSON paths."""

from ipc.api.validation.config_objects import (
    validate_config_map,
    validate_config_map_update,
    validate_secret,
    validate_secret_update,
)
from ipc.api.validation.pod import validate_pod

__all__ = [
    "validate_config_map",
    "validate_config_map_update",
    "validate_pod",
    "validate_secret",
    "validate_secret_update",
]
