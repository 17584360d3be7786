"""Identifiers of kinds of lines in the journal (systemd.journal-fields(7), MESSAGE_ID): ``journalctl MESSAGE_ID=...``.

They never change and are never given to another kind of line.
"""

from __future__ import annotations

from typing import Final

STARTED: Final = "5d1ac1b1f6c54f0b9a5fb8b0b6f3c1d0"
"""The agent starts: version, configuration, instance, socket, Podman."""
ADOPTED: Final = "0e0e6a7a3f5d4c1f8a2f0f6f3a1f9c57"
"""Pods of an earlier run were found and go on."""
STOPPING: Final = "b9a3fd4a9c0b4d3f9b0a5d8e0d2c6e11"
"""The agent ends in order."""
RELOADED: Final = "7c6f1d0e2b9a4e57b1c8d1a4f0e63a92"
"""The configuration was read again."""
GAVE_UP: Final = "e47b20c5d1f84a0c8e3b76f9a52d1c08"
"""The agent ends because it cannot go on."""
MANIFEST_REFUSED: Final = "3f8e1b6a0d5c4b27a9e4c7d2f1b08a65"
"""A manifest is wrong and changes nothing."""


def line_of_kind(message_id: str) -> dict[str, object]:
    """The ``extra`` of a line of that kind."""
    return {"message_id": message_id}
