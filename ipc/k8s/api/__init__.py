"""The Kubernetes API objects that Rootlet reads: decoding, defaults, validation, table of support."""
