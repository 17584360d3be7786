"""Output of the CLI: v1 objects as tables and documents, as kubectl shows them. Pure."""
