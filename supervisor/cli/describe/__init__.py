"""Descriptions of objects for people, a module for each kind (kubectl pkg/describe). Pure."""
