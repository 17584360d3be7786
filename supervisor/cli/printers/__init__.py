"""What the CLI shows: v1 objects as tables, documents and descriptions, as kubectl shows them. Pure."""
