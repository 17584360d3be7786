"""The kinds of volumes, and what they share: payloads, atomic writes, ownership, places."""
