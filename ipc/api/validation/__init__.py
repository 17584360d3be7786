"""What Kubernetes refuses about an object. One module per subject; every check yields FieldErrors with JSON paths."""
