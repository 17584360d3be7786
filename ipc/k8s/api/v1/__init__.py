"""The v1 types: strict frozen structs with Kubernetes' field names."""
