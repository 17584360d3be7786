"""Output of the CLI: v1 objects as tables, documents and descriptions, as kubectl shows them. Pure."""
