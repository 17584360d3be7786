"""Kubernetes' validation of objects beside pods, and checks that all share. Yields FieldErrors with paths. Pure."""
