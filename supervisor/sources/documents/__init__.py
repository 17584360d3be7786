"""From the bytes of a manifest to plain data: YAML or JSON, one document or many. Pure."""
