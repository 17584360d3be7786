"""Parsing of a manifest from bytes to plain data: YAML or JSON, one document or many. Pure."""
