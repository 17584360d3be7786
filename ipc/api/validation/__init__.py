"""What Kubernetes refuses about a pod. One module per subject; every check yields FieldErrors with JSON paths."""

from ipc.api.validation.pod import validate_pod

__all__ = ["validate_pod"]
