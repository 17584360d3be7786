"""Kubernetes' validation of objects. One module per subject; every check yields FieldErrors with JSON paths."""
